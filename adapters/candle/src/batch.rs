//! Several requests, one forward pass.

use candle_core::{Module, Result, Tensor};
use lineage_core::observation::Mark;
use lineage_core::{Epoch, HasEpoch};

/// One forward pass for several requests: their inputs are put together along the first dimension,
/// and each request gets its own rows of the output back, in order.
///
/// The pass is a launch boundary of a new epoch that is linked to each of the requests': putting
/// together, the pass, and taking apart are launched there. Requests without an epoch take part all
/// the same. `input` says where in a request its tensor is, so an unopened envelope will do:
///
/// ```
/// use candle_core::{DType, Device, Result, Tensor};
/// use lineage_candle::forward_batch;
/// use lineage_core::Epoch;
/// use lineage_tokio::{Carried, carried_by};
///
/// # fn main() -> Result<()> {
/// let model = |input: &Tensor| input.affine(2.0, 0.0);
/// let jobs: Vec<Carried<Tensor>> = [1, 3]
///     .into_iter()
///     .map(|rows| {
///         let input = Tensor::ones((rows, 4), DType::F32, &Device::Cpu)?;
///         Ok(carried_by(&Epoch::declare("request"), input))
///     })
///     .collect::<Result<_>>()?;
///
/// let outputs = forward_batch(&model, &jobs, Carried::payload)?;
/// assert_eq!(outputs[1].dims(), [3, 4]);
/// for (job, output) in jobs.into_iter().zip(outputs) {
///     job.run(|_input| drop(output)); // where it is answered, in its own epoch again
/// }
/// # Ok(())
/// # }
/// ```
///
/// The outputs are views: they share the memory of the whole batch's output.
///
/// # Errors
/// As candle's: the inputs do not fit together, the module fails, or its output has fewer rows than
/// its input. No requests at all are no error and no pass.
#[track_caller]
pub fn forward_batch<M, R>(
    module: &M,
    requests: &[R],
    input: impl Fn(&R) -> &Tensor,
) -> Result<Vec<Tensor>>
where
    M: Module + ?Sized,
    R: HasEpoch,
{
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let batch = Epoch::merge(requests);
    batch.mark(Mark::BatchFormed);
    let result: Result<Vec<Tensor>> = batch.launch(|| {
        let inputs: Vec<&Tensor> = requests.iter().map(input).collect();
        let outputs = module.forward(&Tensor::cat(&inputs, 0)?)?;
        let mut first = 0;
        let rows_of = |input: &&Tensor| {
            let rows = input.dim(0)?;
            let output = outputs.narrow(0, first, rows)?;
            first += rows;
            Ok(output)
        };
        inputs.iter().map(rows_of).collect()
    });
    if result.is_err() {
        // That a pass which failed launched nothing is no fault.
        batch.cancel();
    }
    result
}
