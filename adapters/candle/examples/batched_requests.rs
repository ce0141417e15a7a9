//! An engine thread that serves whatever requests wait with one forward pass, and whose work that
//! pass was.
//!
//! `cargo run --example batched_requests`, in `adapters/candle`. With a GPU: turn on candle-core's
//! feature `cuda`, and `Device::Cpu` below becomes `Device::new_cuda(0)?`.

use std::sync::mpsc;
use std::time::Duration;

use candle_core::{Device, Module, Result, Tensor};
use lineage_candle::forward_batch;
use lineage_core::observation::Event;
use lineage_core::{Epoch, HasEpoch as _, Lineage};
use lineage_tokio::{Carried, carried_by};

/// Two layers with an activation between them.
struct Mlp {
    hidden: Tensor,
    output: Tensor,
}

impl Module for Mlp {
    fn forward(&self, input: &Tensor) -> Result<Tensor> {
        input.matmul(&self.hidden)?.relu()?.matmul(&self.output)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let lineage = Lineage::builder()
        .service("batched requests")
        .keep_in_memory(1000)
        .start()?;
    let device = Device::Cpu;
    let model = Mlp {
        hidden: Tensor::randn(0f32, 1.0, (16, 64), &device)?,
        output: Tensor::randn(0f32, 1.0, (64, 4), &device)?,
    };

    let (queue, jobs) = mpsc::channel::<Carried<Tensor>>();
    for rows in 1..=3 {
        let request = Epoch::declare("request");
        let prompt = Tensor::randn(0f32, 1.0, (rows, 16), &device)?;
        println!("request {:?} asks for {rows} rows", request.id());
        queue.send(carried_by(&request, prompt))?;
    }
    drop(queue);

    let engine = std::thread::spawn(move || -> Result<()> {
        let waiting: Vec<Carried<Tensor>> = jobs.iter().collect();
        let outputs = forward_batch(&model, &waiting, Carried::payload)?;
        for (job, output) in waiting.into_iter().zip(outputs) {
            println!("request {:?} gets {:?}", job.epoch(), output.dims());
            job.run(drop);
        }
        Ok(())
    });
    engine.join().expect("the engine does not panic")?;

    let report = lineage.shutdown(Duration::from_secs(5));
    for observation in &report.observations {
        if let Event::Linked(link) = &observation.event {
            println!("batch {} served request {}", link.epoch, link.from);
        }
    }
    Ok(())
}
