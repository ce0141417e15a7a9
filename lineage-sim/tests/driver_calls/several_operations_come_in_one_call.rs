use lineage_sim::isolated;

use crate::call;
use crate::driver::{Driver, Handle};
use crate::{starts, virtual_gpu};

const NAME: &str = "several_operations_come_in_one_call";

/// `CUstreamBatchMemOpParams`: operation, address, value, flags.
fn operation(kind: u64, address: u64, value: u64, flags: u64) -> [u64; 6] {
    [kind, address, value, flags, 0, 0]
}

/// One stream waits for a value that another one's batch writes after its kernel: at 10 µs.
#[test]
fn waits_and_writes() {
    isolated(&format!("{NAME}::waits_and_writes"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let other = driver.new_stream();
        let memory = driver.allocate(16);
        let batch = |stream: Handle, list: &[[u64; 6]]| call!(driver.library, "cuStreamBatchMemOp_v2"(stream => Handle, list.len() as u32 => u32, list.as_ptr() => *const [u64; 6], 0 => u32));
        // WAIT_VALUE_32 until at least 3, WAIT_VALUE_64 until equal to 1 << 40.
        let waits = [
            operation(1, memory, 3, 0),
            operation(4, memory + 8, 1 << 40, 1),
        ];
        assert_eq!(batch(other, &waits), 0);
        assert_eq!(driver.launch_in(other, 2), 0);
        driver.launch(1);
        // WRITE_VALUE_32, BARRIER, WRITE_VALUE_64
        let writes = [
            operation(2, memory, 3, 0),
            operation(6, 0, 0, 0),
            operation(5, memory + 8, 1 << 40, 0),
        ];
        assert_eq!(batch(driver.stream, &writes), 0);
        assert_eq!(
            call!(driver.library, "cuStreamSynchronize"(other => Handle)),
            0
        );
        assert_eq!(starts(&gpu.truth()), [(1, 0), (2, 10_000)]);
        assert_eq!(batch(other, &[operation(99, memory, 0, 0)]), 1);
        assert_eq!(
            batch(other, &[operation(1, memory + 1, 0, 0)]),
            1,
            "not aligned"
        );
    });
}

#[test]
fn copies_in_each_direction() {
    isolated(&format!("{NAME}::copies_in_each_direction"), || {
        let gpu = virtual_gpu();
        let driver = Driver::open();
        let (a, b) = (driver.allocate(64), driver.allocate(64));
        let source = [7_u8; 64];
        let mut target = [0_u8; 64];
        let (from_host, to_host) = (
            source.as_ptr().expose_provenance() as u64,
            target.as_mut_ptr().expose_provenance() as u64,
        );
        let copy = |to: &[u64], from: &[u64], stream: Handle, failed: &mut usize| {
            let bytes = vec![64_usize; to.len()];
            let attributes = [0_u64; 3];
            call!(driver.library, "cuMemcpyBatchAsync"(
                to.as_ptr() => *const u64, from.as_ptr() => *const u64, bytes.as_ptr() => *const usize, to.len() => usize,
                attributes.as_ptr() => *const u64, &0 => *const usize, 1 => usize, failed => *mut usize, stream => Handle,
            ))
        };
        let mut failed = 0;
        let code = copy(
            &[a, b, to_host],
            &[from_host, a, b],
            driver.stream,
            &mut failed,
        );
        driver.synchronize();
        assert_eq!((code, failed, target), (0, usize::MAX, source));
        let truth = gpu.truth();
        assert_eq!(
            (
                truth.operations.len(),
                truth.calls.len(),
                truth.calls[0].operations
            ),
            (3, 1, 3)
        );
        // The second copy is from nowhere: none is made.
        assert_eq!(copy(&[a, b], &[b, 0], driver.stream, &mut failed), 1);
        assert_eq!(failed, 1);
        assert_eq!(
            copy(&[a], &[b], std::ptr::null_mut(), &mut failed),
            1,
            "not in the legacy stream"
        );
        driver.synchronize();
        assert_eq!(gpu.truth().operations.len(), 3);
    });
}
