use lineage_sim::{Config, Gpu, isolated, load};

use crate::build::NodeParams;
use crate::driver::{Driver, Handle};

const NAME: &str = "bodies_run_as_their_value_says";

fn labels(gpu: &Gpu) -> Vec<u64> {
    gpu.truth()
        .operations
        .iter()
        .filter_map(|one| one.label)
        .collect()
}

fn open() -> (Gpu, Driver) {
    let gpu = load(Config::default().virtual_clock().default_kernel_ns(10_000)).unwrap();
    gpu.kernel("work").label_argument(0).timed().unwrap();
    let driver = Driver::open();
    (gpu, driver)
}

/// A graph with one conditional node in front of kernel 99: the bodies.
fn conditional(
    driver: &Driver,
    default: u32,
    kind: u32,
    bodies: u32,
) -> (Handle, u64, Vec<Handle>) {
    let graph = driver.new_graph();
    let value = driver.conditional_value(graph, default);
    let mut params = NodeParams::conditional(value, kind, bodies);
    let node = driver.add_params(graph, &[], &mut params).unwrap();
    driver.add_kernel(graph, &[node], 99);
    (graph, value, params.bodies(bodies as usize))
}

/// The body's first kernel counts; with the third round it sets the value to 0. The second has the label 5.
#[test]
fn while_again_and_again() {
    isolated(&format!("{NAME}::while_again_and_again"), || {
        let (gpu, driver) = open();
        let (graph, value, bodies) = conditional(&driver, 1, 1, 1);
        let rounds = std::sync::atomic::AtomicU64::new(0);
        gpu.kernel("work")
            .label_argument(0)
            .duration_ns(10_000)
            .run(move |launch| {
                if launch.argument::<u64>(0)? == 5 {
                    let round = rounds.fetch_add(1, std::sync::atomic::Ordering::SeqCst) + 1;
                    assert!(launch.set_conditional(value, u32::from(!round.is_multiple_of(3))));
                    assert!(!launch.set_conditional(value + 1_000, 1));
                }
                Ok(())
            })
            .unwrap();
        let first = driver.add_kernel(bodies[0], &[], 4);
        driver.add_kernel(bodies[0], &[first], 5);
        let exec = driver.instantiate(graph);
        driver.launch_graph(exec, driver.stream);
        driver.launch_graph(exec, driver.stream);
        driver.synchronize();
        let once = [4, 5, 4, 5, 4, 5, 99];
        assert_eq!(labels(&gpu), [once, once].concat());
        let operations = gpu.truth().operations;
        let begin_ns = operations[0].start_ns;
        for (at, operation) in operations.iter().enumerate() {
            assert_eq!(
                operation.start_ns - begin_ns,
                10_000 * at as u64,
                "in one row"
            );
        }
        // The same node again and again, under the same call.
        let node = |at: usize| operations[at].graph.unwrap().node_id;
        assert_eq!((node(0), node(2)), (node(2), node(4)));
        assert_eq!(operations[0].call_ordinal, operations[6].call_ordinal);
        assert_eq!(gpu.counts().operations_pending, 0);
    });
}

#[test]
fn if_once_or_not_at_all() {
    isolated(&format!("{NAME}::if_once_or_not_at_all"), || {
        let (gpu, driver) = open();
        for (default, bodies) in [(1, 1), (0, 1), (1, 2), (0, 2)] {
            let (graph, _, inner) = conditional(&driver, default, 0, bodies);
            for (at, body) in inner.iter().enumerate() {
                driver.add_kernel(*body, &[], 10 + at as u64);
            }
            driver.launch_graph(driver.instantiate(graph), driver.stream);
        }
        driver.synchronize();
        assert_eq!(labels(&gpu), [10, 99, 99, 10, 99, 11, 99]);
    });
}

#[test]
fn switch_to_the_one_of_that_number() {
    isolated(&format!("{NAME}::switch_to_the_one_of_that_number"), || {
        let (gpu, driver) = open();
        for default in [2, 0, 3] {
            let (graph, _, inner) = conditional(&driver, default, 2, 3);
            for (at, body) in inner.iter().enumerate() {
                driver.add_kernel(*body, &[], 10 + at as u64);
            }
            driver.launch_graph(driver.instantiate(graph), driver.stream);
        }
        driver.synchronize();
        assert_eq!(labels(&gpu), [12, 99, 10, 99, 99]);
        let graph = driver.new_graph();
        let mut params = NodeParams::conditional(12_345, 0, 1);
        assert_eq!(
            driver.add_params(graph, &[], &mut params),
            Err(1),
            "there is no such value"
        );
        let value = driver.conditional_value(graph, 0);
        let mut params = NodeParams::conditional(value, 1, 2);
        assert_eq!(
            driver.add_params(graph, &[], &mut params),
            Err(1),
            "a while has one body"
        );
    });
}
