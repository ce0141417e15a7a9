//! A batch's launches are the batch's, which is linked to every request in it; each request gets its
//! own rows back.
#![cfg(feature = "record")]

mod boundary;

use std::collections::BTreeSet;

use boundary::{Launch, Launches, recorded};
use candle_core::{Device, Result, Tensor};
use lineage_candle::forward_batch;
use lineage_core::Epoch;
use lineage_core::observation::{Event, LinkKind, Mark, RetiredAs};
use lineage_tokio::{Carried, carried_by};

/// A request with this many rows, each of which holds the request's number.
fn job(epoch: &Epoch, number: usize, rows: usize) -> Carried<Tensor> {
    let input = Tensor::full(number as f32, (rows, 4), &Device::Cpu);
    carried_by(epoch, input.expect("it fits in memory"))
}

/// Adds a thousand, as the model.
fn model(input: &Tensor) -> Result<Tensor> {
    input.affine(1.0, 1000.0)
}

#[test]
fn and_each_gets_its_own_rows() {
    const ROWS: [usize; 5] = [1, 3, 2, 7, 1];
    let (epochs, report) = recorded(|| {
        let epochs = ROWS.map(|_| Epoch::declare("request"));
        let jobs: Vec<_> = (0..ROWS.len())
            .map(|number| job(&epochs[number], number, ROWS[number]))
            .collect();
        let launches = Launches::around(model);
        let outputs = forward_batch(&launches, &jobs, Carried::payload).expect("they fit");
        for (number, output) in outputs.iter().enumerate() {
            let rows = output.to_vec2::<f32>().expect("on the CPU");
            let right = vec![vec![1000.0 + number as f32; 4]; ROWS[number]];
            assert_eq!(rows, right, "request {number}");
        }
        assert_eq!(outputs.len(), ROWS.len());
        for job in jobs {
            job.run(drop);
        }
        (
            epochs.map(|epoch| epoch.id().expect("recording is on")),
            launches.take(),
        )
    });
    let (epochs, launches) = epochs;

    let mut linked = BTreeSet::new();
    let mut batches = BTreeSet::new();
    for observation in &report.observations {
        if let Event::Linked(link) = &observation.event {
            assert_eq!(link.kind, LinkKind::Merge);
            batches.insert(link.epoch);
            linked.insert(link.from);
        }
    }
    assert_eq!(linked, BTreeSet::from(epochs));
    let batch = batches.pop_first().expect("a batch");
    assert_eq!(batches.len(), 0, "it is one batch");
    assert_eq!(launches, [Launch::of(batch); 2]);
    let marks = report.observations.iter().filter(|it| {
        matches!(&it.event, Event::Marked(marked)
            if marked.epoch == batch && marked.mark == Mark::BatchFormed)
    });
    assert_eq!(marks.count(), 1);
    let totals = report.totals.epochs;
    assert_eq!((totals.declared, totals.live), (ROWS.len() as u64 + 1, 0));
}

#[test]
fn a_request_without_an_epoch_takes_part() {
    let (outputs, report) = recorded(|| {
        let request = Epoch::declare("request");
        let jobs = [job(&Epoch::inert(), 0, 1), job(&request, 1, 1)];
        let outputs = forward_batch(&model, &jobs, Carried::payload).expect("they fit");
        outputs.len()
    });
    assert_eq!(outputs, 2);
    let links = report
        .observations
        .iter()
        .filter(|it| matches!(it.event, Event::Linked(_)));
    assert_eq!(links.count(), 1);
}

#[test]
fn no_requests_are_no_pass() {
    let (outputs, report) = recorded(|| {
        let launches = Launches::around(model);
        let outputs = forward_batch(&launches, &[], Carried::payload).expect("nothing fails");
        assert_eq!(launches.take(), []);
        outputs.len()
    });
    assert_eq!((outputs, report.totals.epochs.declared), (0, 0));
}

#[test]
fn inputs_that_do_not_fit_together_are_candles_error_and_cancel_the_batch() {
    let ((), report) = recorded(|| {
        let request = Epoch::declare("request");
        let narrow = Tensor::zeros((1, 3), candle_core::DType::F32, &Device::Cpu);
        let narrow = carried_by(&request, narrow.expect("it fits in memory"));
        let jobs = [job(&request, 0, 1), narrow];
        assert!(forward_batch(&model, &jobs, Carried::payload).is_err());

        // A model that answers with fewer rows than it was asked.
        let jobs = [job(&request, 0, 2), job(&request, 1, 2)];
        let pools = |input: &Tensor| input.mean_keepdim(0);
        assert!(forward_batch(&pools, &jobs, Carried::payload).is_err());
    });
    let retired = report.observations.iter().filter_map(|it| match &it.event {
        Event::Retired(retired) => Some(retired.how),
        _ => None,
    });
    let retired: Vec<_> = retired.collect();
    let cancelled = retired.iter().filter(|how| **how == RetiredAs::Cancelled);
    assert_eq!((cancelled.count(), retired.len()), (2, 3));
}
