//! A collector that speaks HTTP, or what a test wants to be taken for it.
