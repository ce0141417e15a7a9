use std::collections::HashMap;
use std::process::Command;

use lineage_sim::{Gpu, Settings, load};

use crate::client::{
    CONCURRENT_KERNEL, CUSTOM2, Cupti, DRIVER, EXTERNAL_CORRELATION, MEMCPY, Record,
};
use crate::config;
use crate::driver::Driver;

const SEED: &str = "LINEAGE_SIM_TEST_SEED";

/// Three threads with streams of their own, of which two share a channel, and a graph of costs. Prints every record and the truth, with thread and
/// process ids as ordinals.
#[test]
#[ignore = "run by the tests below, in processes of their own"]
fn print_records() {
    let seed = std::env::var(SEED).map_or(1, |seed| seed.parse().unwrap());
    let settings = Settings::default()
        .seed(seed)
        .call_ns(1_700)
        .channels(2)
        .ring_entries(8)
        .multiprocessors(2)
        .dispatch_ns(400);
    let gpu = load(config(settings)).unwrap();
    gpu.kernel("work")
        .label_argument(0)
        .duration_ns(6_100)
        .timed()
        .unwrap();
    let driver = Driver::open();
    let cupti = Cupti::open();
    cupti.enable(&[DRIVER, CONCURRENT_KERNEL, MEMCPY, EXTERNAL_CORRELATION]);
    let memory = driver.allocate(4_096);
    std::thread::scope(|scope| {
        for (number, place) in gpu.host_threads(3).into_iter().enumerate() {
            let (gpu, driver, cupti) = (&gpu, &driver, &cupti);
            scope
                .spawn(move || place.run(|| one_thread(gpu, driver, cupti, memory, number as u64)));
        }
    });
    let records = cupti.records();
    let mut ids: HashMap<u32, usize> = HashMap::new();
    let mut ordinal = |id: &mut u32| {
        let next = ids.len();
        *id = *ids.entry(*id).or_insert(next) as u32;
    };
    for mut record in records {
        if let Record::Api {
            process, thread, ..
        } = &mut record
        {
            ordinal(process);
            ordinal(thread);
        }
        println!("record {record:?}");
    }
    for mut operation in gpu.truth().operations {
        operation.thread_id = 0;
        println!("record {operation:?}");
    }
}

fn one_thread(gpu: &Gpu, driver: &Driver, cupti: &Cupti, memory: u64, number: u64) {
    driver.bind();
    let stream = driver.new_stream();
    for round in 0..40 {
        cupti.push(CUSTOM2, 1_000 * number + round);
        assert_eq!(driver.launch_in(stream, 100 * number + round), 0);
        cupti.pop(CUSTOM2).unwrap();
        if round % 8 == number {
            gpu.spend_ns(3_000);
            driver.copy_to_device(memory, &[number as u8; 512]);
        }
        if round % 16 == 7 {
            let code = crate::call!(driver.library, "cuStreamSynchronize"(stream => crate::driver::Handle));
            assert_eq!(code, 0);
        }
    }
}

/// What one process prints.
fn run(seed: u64) -> Vec<String> {
    let name = "the_same_seed_gives_the_same_records::print_records";
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            name,
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(SEED, seed.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        output.status.success(),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = text.lines().filter(|line| line.starts_with("record "));
    lines.map(str::to_owned).collect()
}

#[test]
fn three_threads_in_two_processes() {
    let first = run(1);
    // 120 launches with their call, their operation, their external id and their truth are the least.
    assert!(first.len() > 480, "{}", first.len());
    let second = run(1);
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(first, second);
    }
    assert_eq!(first.len(), second.len());
}

#[test]
fn another_seed_gives_another_order() {
    assert_ne!(run(1), run(3));
}
