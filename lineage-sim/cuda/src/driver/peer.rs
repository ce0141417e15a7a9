//! Peers: which devices reach each other's memory, and copies between them.
//!
//! Every device can access every other. As on real devices that is to be enabled before a kernel may do it, which the simulator
//! does not check; copies between devices need no enabling.

use std::ffi::{c_int, c_uint};
use std::sync::Mutex;

use crate::abi::OPERATION_COPY_DEVICE_TO_DEVICE;
use crate::call::{Asks, Call};
use crate::cupti::api::runtime;
use crate::driver::general::check_device;
use crate::driver::transfer::{copy, is_on_device};
use crate::driver::{Out, driver_functions};
use crate::handles::{Handle, HandleNumber};
use crate::objects::{CONTEXTS, Context, current_context};
use crate::result;
use crate::sync::lock;

/// Pairs of a context and the peer that it may access.
static ENABLED: Mutex<Vec<(HandleNumber, HandleNumber)>> = Mutex::new(Vec::new());

/// The pair that is meant: two contexts of different devices.
fn pair(peer: Handle) -> Result<(HandleNumber, HandleNumber), u32> {
    let context = current_context()?;
    let peer = CONTEXTS.get(peer).ok_or(result::INVALID_CONTEXT)?;
    if context.device == peer.device {
        return Err(result::INVALID_DEVICE);
    }
    Ok((context.number, peer.number))
}

fn copy_peer(
    call: &Call<'_>,
    (to, to_context): (u64, Handle),
    (from, from_context): (u64, Handle),
    bytes: usize,
    of: Option<Handle>,
) -> Result<(), u32> {
    let context = |handle| CONTEXTS.get(handle).ok_or(result::INVALID_CONTEXT);
    let (to_context, from_context) = (context(to_context)?, context(from_context)?);
    let is_right = |address, context: &Context| bytes == 0 || is_on_device(address, context.device);
    if !is_right(to, &to_context) || !is_right(from, &from_context) {
        return Err(result::INVALID_VALUE);
    }
    copy(call, OPERATION_COPY_DEVICE_TO_DEVICE, to, from, bytes, of)
}

driver_functions! {
    fn cuDeviceCanAccessPeer [312, Asks::Nothing] (_, can: Out<c_int>, device: c_int, peer: c_int) {
        let (device, peer) = (check_device(device)?, check_device(peer)?);
        can.put((device != peer).into())
    }

    fn cuDeviceGetP2PAttribute [454, Asks::Nothing] (_, value: Out<c_int>, attribute: u32, device: c_int, peer: c_int) {
        let (device, peer) = (check_device(device)?, check_device(peer)?);
        if device == peer {
            return Err(result::INVALID_DEVICE);
        }
        value.put(match attribute {
            // Access, native atomics, and access to arrays: all the same between all.
            2..=4 => 1,
            // Performance rank: 0 is the best.
            1 => 0,
            _ => return Err(result::INVALID_VALUE),
        })
    }

    fn cuCtxEnablePeerAccess [313, Asks::Nothing] (_, peer: Handle, flags: c_uint) {
        if flags != 0 {
            return Err(result::INVALID_VALUE);
        }
        let pair = pair(peer)?;
        let mut enabled = lock(&ENABLED);
        if enabled.contains(&pair) {
            return Err(result::PEER_ACCESS_ALREADY_ENABLED);
        }
        enabled.push(pair);
        Ok(())
    }

    fn cuCtxDisablePeerAccess [314, Asks::Nothing] (_, peer: Handle) {
        let pair = pair(peer)?;
        let mut enabled = lock(&ENABLED);
        let at = enabled.iter().position(|other| *other == pair);
        enabled.swap_remove(at.ok_or(result::PEER_ACCESS_NOT_ENABLED)?);
        Ok(())
    }

    fn cuMemcpyPeer [318 also cuMemcpyPeer_ptds 409, Asks::Work(runtime::COPY_PEER)] (call, to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize) {
        copy_peer(call, (to, to_context), (from, from_context), bytes, None)
    }

    fn cuMemcpyPeerAsync [319 also cuMemcpyPeerAsync_ptsz 426, Asks::Work(runtime::COPY_PEER_ASYNC)] (call, to: u64, to_context: Handle, from: u64, from_context: Handle, bytes: usize, of: Handle) {
        copy_peer(call, (to, to_context), (from, from_context), bytes, Some(of))
    }
}
