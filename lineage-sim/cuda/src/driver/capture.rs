//! Stream capture. What it does is in [`crate::graph::capture`].

use std::cell::RefCell;

use crate::call::{Asks, Call};
use crate::driver::graph::behind;
use crate::driver::{Out, driver_functions};
use crate::graph::capture::{self, Behind, Mode, Status};
use crate::graph::world::EdgeData;
use crate::handles::{Handle, handle, number};
use crate::objects::{current_context, is_legacy, stream};
use crate::result;

thread_local! {
    /// What the newest question about a capture on this thread was answered with: valid until the next one.
    static ANSWER: RefCell<(Vec<Handle>, Vec<EdgeData>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

/// `CU_STREAM_SET_CAPTURE_DEPENDENCIES`: instead of adding.
const SET: u32 = 1;

struct Asked {
    status: Out<u32>,
    id: Out<u64>,
    graph: Out<Handle>,
    nodes: Out<*const Handle>,
    edges: Out<*const EdgeData>,
    count: Out<usize>,
}

fn tell(of: Handle, asked: &Asked) -> Result<(), u32> {
    let stream = stream_to_ask(of)?;
    let Some(info) = stream.as_deref().and_then(capture::info) else {
        return asked.status.put(Status::None as u32);
    };
    asked.status.put(info.status as u32)?;
    if info.status == Status::Invalidated {
        return Ok(());
    }
    asked.id.put_if_wanted(info.id);
    asked.graph.put_if_wanted(handle(info.graph));
    asked.count.put_if_wanted(info.behind.len());
    let is_lossy = info
        .behind
        .iter()
        .any(|(_, data)| *data != EdgeData::default());
    if is_lossy && asked.nodes.check().is_ok() && asked.edges.check().is_err() {
        return Err(result::LOSSY_QUERY);
    }
    let (nodes, edges) = info
        .behind
        .iter()
        .map(|(node, data)| (handle(*node), *data))
        .unzip();
    ANSWER.with_borrow_mut(|answer| {
        *answer = (nodes, edges);
        asked.nodes.put_if_wanted(answer.0.as_ptr());
        asked.edges.put_if_wanted(answer.1.as_ptr());
    });
    Ok(())
}

/// The stream that a question is about: asking is no use of the legacy stream, so it makes no capture invalid.
fn stream_to_ask(of: Handle) -> Result<Option<std::sync::Arc<crate::objects::Stream>>, u32> {
    if is_legacy(of) {
        capture::check_legacy(current_context()?.number, false)?;
        return Ok(None);
    }
    stream(of).map(Some)
}

fn update(
    of: Handle,
    nodes: *const Handle,
    edges: *const EdgeData,
    count: usize,
    flags: u32,
) -> Result<(), u32> {
    if flags > SET {
        return Err(result::INVALID_VALUE);
    }
    capture::update(&*stream(of)?, behind(nodes, edges, count)?, flags == SET)
}

fn begin(
    call: &Call<'_>,
    of: Handle,
    mode: u32,
    into: Option<(Handle, Vec<Behind>)>,
) -> Result<(), u32> {
    let mode = Mode::of(mode)?;
    let into = into.map(|(graph, behind)| (number(graph), behind));
    capture::begin(call, &*stream(of)?, mode, into)
}

driver_functions! {
    fn cuStreamBeginCapture_v2 [539 also cuStreamBeginCapture_v2_ptsz 540, Asks::Nothing] (call, of: Handle, mode: u32) {
        begin(call, of, mode, None)
    }

    fn cuStreamBeginCapture [495 also cuStreamBeginCapture_ptsz 496, Asks::Nothing] (call, of: Handle) {
        begin(call, of, 0, None)
    }

    fn cuStreamBeginCaptureToGraph [720 also cuStreamBeginCaptureToGraph_ptsz 721, Asks::Nothing] (call, of: Handle, graph: Handle, nodes: *const Handle, edges: *const EdgeData, count: usize, mode: u32) {
        begin(call, of, mode, Some((graph, behind(nodes, edges, count)?)))
    }

    fn cuStreamEndCapture [497 also cuStreamEndCapture_ptsz 498, Asks::Nothing] (call, of: Handle, graph: Out<Handle>) {
        graph.check()?;
        graph.put(std::ptr::null_mut())?;
        let ended = capture::end(call, &*stream(of)?)?;
        graph.put(handle(ended))
    }

    fn cuStreamIsCapturing [499 also cuStreamIsCapturing_ptsz 500, Asks::Nothing] (_, of: Handle, status: Out<u32>) {
        let asked = Asked {
            status,
            id: Out::nowhere(),
            graph: Out::nowhere(),
            nodes: Out::nowhere(),
            edges: Out::nowhere(),
            count: Out::nowhere(),
        };
        tell(of, &asked)
    }

    fn cuStreamGetCaptureInfo [536 also cuStreamGetCaptureInfo_ptsz 537, Asks::Nothing] (_, of: Handle, status: Out<u32>, id: Out<u64>) {
        let asked = Asked { status, id, graph: Out::nowhere(), nodes: Out::nowhere(), edges: Out::nowhere(), count: Out::nowhere() };
        tell(of, &asked)
    }

    fn cuStreamGetCaptureInfo_v2 [629 also cuStreamGetCaptureInfo_v2_ptsz 630, Asks::Nothing] (_, of: Handle, status: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>, count: Out<usize>) {
        let asked = Asked { status, id, graph, nodes, edges: Out::nowhere(), count };
        tell(of, &asked)
    }

    fn cuStreamGetCaptureInfo_v3 [729 also cuStreamGetCaptureInfo_v3_ptsz 730, Asks::Nothing] (_, of: Handle, status: Out<u32>, id: Out<u64>, graph: Out<Handle>, nodes: Out<*const Handle>, edges: Out<*const EdgeData>, count: Out<usize>) {
        let asked = Asked { status, id, graph, nodes, edges, count };
        tell(of, &asked)
    }

    fn cuStreamUpdateCaptureDependencies [631 also cuStreamUpdateCaptureDependencies_ptsz 632, Asks::Nothing] (_, of: Handle, nodes: *mut Handle, count: usize, flags: u32) {
        update(of, nodes, std::ptr::null(), count, flags)
    }

    fn cuStreamUpdateCaptureDependencies_v2 [731 also cuStreamUpdateCaptureDependencies_v2_ptsz 732, Asks::Nothing] (_, of: Handle, nodes: *mut Handle, edges: *const EdgeData, count: usize, flags: u32) {
        update(of, nodes, edges, count, flags)
    }

    fn cuThreadExchangeStreamCaptureMode [541, Asks::Nothing] (_, mode: Out<u32>) {
        mode.check()?;
        // SAFETY: not null, and the caller's to be valid.
        let wanted = Mode::of(unsafe { mode.pointer().read() })?;
        mode.put(capture::exchange_mode(wanted) as u32)
    }
}
