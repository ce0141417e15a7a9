//! One request's tiles on all cores, beside another's: whose launch is whose, on every thread.
//!
//! `cargo run -p lineage-rayon --example one_request_on_all_cores`

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use lineage_core::{Epoch, Lineage, current};
use lineage_rayon::ParallelIteratorExt as _;
use rayon::prelude::*;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let lineage = Lineage::builder().service("tiles").start()?;
    let launches = Mutex::new(BTreeMap::<_, usize>::new());

    std::thread::scope(|scope| {
        for request in ["cat.png", "dog.png"] {
            let launches = &launches;
            scope.spawn(move || {
                let epoch = Epoch::declare("request");
                epoch.run(|| {
                    (0..1000)
                        .into_par_iter()
                        .in_current_epoch()
                        .for_each(|_tile| {
                            // Here a kernel would be launched, in `lineage_core::launch(|| …)`.
                            let mut launches = launches.lock().expect("no panic");
                            *launches.entry((request, current().epoch())).or_default() += 1;
                        });
                });
            });
        }
    });

    for ((request, epoch), count) in launches.into_inner()? {
        let epoch = epoch.map_or("no epoch".to_owned(), |epoch| epoch.to_string());
        println!("{request}  {count} launches  {epoch}");
    }
    let report = lineage.shutdown(Duration::from_secs(5));
    println!("{report}");
    Ok(())
}
