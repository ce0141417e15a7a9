//! What becomes of graphs, and what a launch of one means.
//!
//! CUPTI's record of a replayed node names a node of the *executable* graph and bears the number of
//! the launch. Who built the node follows from the graphs' changes, which come in one total order
//! ([`GraphSequence`](crate::observation::GraphSequence)):
//!
//! * A node that is made has itself as its *origin*; one that is cloned has the origin of what it
//!   was cloned from **at that moment**. So the origin of an executable graph's node is the node that
//!   was captured or made by hand, through however many copies, and nothing has to be kept for those
//!   that come later. (`templates`)
//! * An executable graph is a *generation* of its id, from its instantiation to its destruction. Its
//!   nodes' origins and switches may change under it; each change has its place in the order, and the
//!   state before it is kept as long as a launch from before it may still come. (`exec`)
//! * A launch names the executable graph by id and the last change before it, so it means exactly
//!   one generation and one state of its nodes, whatever has happened since. A launch that knows of
//!   a change which is not here yet waits. (`launches`)
//! * Launches of one generation are numbered in the order of their calls, once no ring can hold an
//!   earlier one any more. Launches that failed are none.
//! * What a row says of its graph, and what is wrong with it, is in `rows`.
//!
//! Bounded by [`Limits::graph_nodes`](super::Limits::graph_nodes). A generation that was destroyed
//! goes as soon as no launch from before that can come and none of those that came is open.

mod exec;
mod launches;
mod rows;
mod seen;
mod templates;
mod windows;

pub(super) use launches::{Launch, UNDER_WAY};
pub(super) use templates::Graphs;
