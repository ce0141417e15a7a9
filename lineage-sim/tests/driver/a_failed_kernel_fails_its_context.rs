use lineage_sim::{Config, KernelError, isolated, load};

use crate::call;
use crate::driver::Driver;

const NAME: &str = "a_failed_kernel_fails_its_context";

/// What the synchronisation says after a kernel that does this, and every call after it.
fn run(does: impl Fn() -> Result<(), KernelError> + Send + Sync + 'static) -> [u32; 3] {
    let gpu = load(Config::default()).unwrap();
    gpu.register_kernel("work", move |_| does()).unwrap();
    let driver = Driver::open();
    driver.launch(1);
    let synchronised =
        call!(driver.library, "cuStreamSynchronize"(driver.stream => crate::driver::Handle));
    let launched = driver.launch_in(driver.stream, 2);
    let mut pointer = 0_u64;
    let allocated = call!(driver.library, "cuMemAlloc_v2"(&mut pointer => *mut u64, 8 => usize));
    assert_eq!(
        gpu.truth().operations.len(),
        1,
        "nothing was launched after it"
    );
    assert_eq!(gpu.truth().operations[0].result, synchronised);
    assert_eq!(
        gpu.counts().panics_caught,
        0,
        "a kernel's own panic is no defect of the simulator"
    );
    // The error goes with the context.
    assert_eq!(
        call!(driver.library, "cuDevicePrimaryCtxReset_v2"(0 => i32)),
        0
    );
    let fresh = Driver::open();
    fresh.synchronize();
    [synchronised, launched, allocated]
}

#[test]
fn with_launch_failed_when_it_panics() {
    isolated(
        &format!("{NAME}::with_launch_failed_when_it_panics"),
        || {
            assert_eq!(run(|| panic!("the kernel's own")), [719; 3]);
        },
    );
}

#[test]
fn with_illegal_address_when_it_leaves_its_memory() {
    isolated(
        &format!("{NAME}::with_illegal_address_when_it_leaves_its_memory"),
        || {
            let leaves = || {
                Err(KernelError::IllegalAddress {
                    address: 8,
                    bytes: 1,
                })
            };
            assert_eq!(run(leaves), [700; 3]);
        },
    );
}

#[test]
fn with_launch_failed_when_it_says_so() {
    isolated(
        &format!("{NAME}::with_launch_failed_when_it_says_so"),
        || {
            assert_eq!(
                run(|| Err(KernelError::Failed("on purpose".to_owned()))),
                [719; 3]
            );
        },
    );
}
