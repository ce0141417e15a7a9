//! Collectives: kernels in several streams, mostly of several devices, each of which waits inside for the last.

use std::collections::HashMap;

use crate::work::{Collective, Work};

use super::Model;
use super::operations::OperationKey;

/// Rounds that some members have started and others have not.
#[derive(Default)]
pub(super) struct Collectives {
    open: HashMap<(u64, u64), Vec<OperationKey>>,
}

impl<P> Model<P> {
    /// A member has started; when it is the last, all go on.
    pub(super) fn join_collective(&mut self, key: OperationKey) {
        let Some(operation) = self.operations.get_mut(key) else {
            return;
        };
        let Work::Kernel {
            collective: Some(Collective { key: of, size }),
            ..
        } = operation.work
        else {
            return;
        };
        operation.collective_waits = true;
        let round = self.rounds.entry((of, operation.stream.0)).or_insert(0);
        *round += 1;
        let round = *round;
        let members = self.collectives.open.entry((of, round)).or_default();
        members.push(key);
        if members.len() < size as usize {
            return;
        }
        for member in self
            .collectives
            .open
            .remove(&(of, round))
            .unwrap_or_default()
        {
            if let Some(operation) = self.operations.get_mut(member) {
                operation.collective_waits = false;
            }
            self.release_held(member);
        }
    }
}
