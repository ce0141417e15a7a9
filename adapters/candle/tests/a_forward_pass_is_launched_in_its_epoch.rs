//! What a module launches is its epoch's by every source, and nothing stays behind, also when it
//! fails or panics.
#![cfg(feature = "record")]

mod boundary;

use std::panic::{AssertUnwindSafe, catch_unwind};

use boundary::{Launch, Launches, recorded};
use candle_core::{DType, Device, Module, Result, Tensor, bail};
use lineage_candle::ModuleExt as _;
use lineage_core::{Attribution, Epoch};

fn input() -> Tensor {
    Tensor::ones((2, 3), DType::F32, &Device::Cpu).expect("it fits in memory")
}

fn double(input: &Tensor) -> Result<Tensor> {
    input.affine(2.0, 0.0)
}

#[test]
fn of_the_given_epoch() {
    recorded(|| {
        let model = Launches::around(double);
        let (one, two) = (Epoch::declare("request"), Epoch::declare("request"));
        for epoch in [&one, &two, &one] {
            let output = model.forward_in_epoch(&input(), epoch).expect("it works");
            assert_eq!(output.to_vec2::<f32>().expect("on the CPU"), [[2.0; 3]; 2]);
            let launch = Launch::of(epoch.id().expect("recording is on"));
            assert_eq!(model.take(), [launch; 2]);
        }
    });
}

#[test]
fn of_the_epoch_that_is_current_where_the_model_is_called() {
    recorded(|| {
        let model = Launches::around(double).launching();
        let request = Epoch::declare("request");
        request.run(|| model.forward(&input()).expect("it works"));
        let launches = model.into_inner();
        let launch = Launch::of(request.id().expect("recording is on"));
        assert_eq!(launches.take(), [launch; 2]);

        // Without any epoch it is a boundary of none, which is reported as lost.
        let model = launches.launching();
        model.forward(&input()).expect("it works");
        let launch = Launch {
            attribution: Attribution::BoundaryWithoutEpoch,
            in_boundary: true,
            pushed: Some(Attribution::BoundaryWithoutEpoch),
        };
        assert_eq!(model.into_inner().take(), [launch; 2]);
    });
}

#[test]
fn a_layer_within_a_forward_pass_may_have_its_own() {
    recorded(|| {
        let request = Epoch::declare("request");
        let draft = request.fork("draft");
        let inner = Launches::around(double);
        let model = Launches::around(|input: &Tensor| inner.forward_in_epoch(input, &draft));
        model
            .forward_in_epoch(&input(), &request)
            .expect("it works");
        let of = |epoch: &Epoch| Launch::of(epoch.id().expect("recording is on"));
        assert_eq!(model.take(), [of(&request); 2]);
        assert_eq!(inner.take(), [of(&draft); 2]);
    });
}

#[test]
fn a_pass_that_fails_or_panics_ends_its_boundary() {
    recorded(|| {
        let request = Epoch::declare("request");
        let fails = Launches::around(|_: &Tensor| bail!("on purpose"));
        assert!(fails.forward_in_epoch(&input(), &request).is_err());
        assert_eq!(fails.take().len(), 1);

        let panics = Launches::around(|_: &Tensor| panic!("on purpose"));
        let pass = || panics.forward_in_epoch(&input(), &request);
        assert!(catch_unwind(AssertUnwindSafe(pass)).is_err());
        assert_eq!(panics.take().len(), 1);
        // `recorded` looks whether anything was left on CUPTI's stack or on the thread.
    });
}
