//! The session: CUPTI, subscribed, switched on, drained, and left in order.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::AcqRel;
use std::time::{Duration, Instant};

use lineage_core::id::HostNanos;
use lineage_core::observation::{
    DeviceSession, DropSite, Dropped, Event, Flushed, GraphChange, Observation,
};
use lineage_core::source::{EvidenceSource, NoEvidence, SourceContext, Tier};

use crate::Cupti;
use crate::decode::{self, Decoder, Names, Tally};
use crate::options::{Options, RecordedCalls};
use crate::sys::codes::{self, kind, result};
use crate::sys::{Library, Subscriber};

mod buffers;
mod callback;
mod devices;
mod enable;
mod explain;
mod external;
mod failure;
mod graph;
mod process;
mod self_test;
pub(crate) mod state;
mod unload;

pub(crate) use graph::edges::record_edges;

use enable::{
    API_KINDS, KINDS, OPTIONAL_KINDS, choose_calls, disable_all, watch_driver_calls,
    watch_unloading,
};
use failure::StartError;
use self_test::SelfTest;

/// Subscription of the session, or of one that was dropped without being stopped.
static SUBSCRIBER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A session that collects.
pub(crate) struct Session {
    library: &'static Library,
    number: u32,
    clock: fn() -> u64,
    decoder: Decoder,
    /// To be given on at the next drain.
    due: Vec<Event>,
    /// Fences, to be given on after everything that completed before them.
    fences: Vec<Flushed>,
    self_test: SelfTest,
    started: HostNanos,
    recorded_calls: RecordedCalls,
    /// Whether calls are chosen one by one.
    chosen: bool,
    /// Whether the devices are still to be described: the driver is initialised later.
    describes_devices: bool,
}

impl Session {
    /// Starts one, in the one order in which CUPTI gives everything to everybody:
    /// subscribe (is CUPTI free?), clock, thread ids, buffers, then what is to be recorded.
    fn start(options: &Options, clock: fn() -> u64, tier: Tier) -> Result<Self, StartError> {
        if state::is_forked_child() {
            return Err(StartError::ForkedChild);
        }
        if !state::claim() {
            return Err(StartError::SessionAlive);
        }
        Self::start_claimed(options, clock, tier).inspect_err(|_| {
            state::switch_off();
            state::unclaim();
        })
    }

    fn start_claimed(
        options: &Options,
        clock: fn() -> u64,
        tier: Tier,
    ) -> Result<Self, StartError> {
        let library = process::library(options.library.as_deref()).map_err(StartError::load)?;
        let functions = library.functions();
        let check = |function: &'static str, code: u32| match code {
            result::SUCCESS => Ok(()),
            code => Err(StartError::call(function, library, code)),
        };
        if unsubscribe(library) {
            // A session was dropped without being stopped. What it left in buffers is not ours, and
            // what we collect shall not go into those.
            // SAFETY: takes a number.
            unsafe { (functions.activity_flush_all)(codes::FLUSH_FORCED) };
        }
        state::prepare(functions, options.external_kind.number(), clock);
        buffers::configure(options.buffer_bytes, options.buffer_limit);

        let mut subscriber: Subscriber = null_mut();
        // SAFETY: a valid place for the handle; the callback lives for good and needs no user data.
        let code =
            unsafe { (functions.subscribe)(&mut subscriber, callback::api_call, null_mut()) };
        check("cuptiSubscribe", code)?;
        SUBSCRIBER.store(subscriber, std::sync::atomic::Ordering::Release);

        let started = Self::start_subscribed(library, options, clock, tier, &check, subscriber);
        if started.is_err() {
            disable_all(library);
            unsubscribe(library);
        }
        started
    }

    fn start_subscribed(
        library: &'static Library,
        options: &Options,
        clock: fn() -> u64,
        tier: Tier,
        check: &dyn Fn(&'static str, u32) -> Result<(), StartError>,
        subscriber: Subscriber,
    ) -> Result<Self, StartError> {
        let functions = library.functions();
        check(
            "cuptiActivityRegisterTimestampCallback",
            process::register_clock(library),
        )?;
        // Else thread ids are addresses cut to 32 bits, and match nobody's.
        // SAFETY: takes a number.
        let code = unsafe { (functions.set_thread_id_type)(codes::THREAD_ID_TYPE_SYSTEM) };
        check("cuptiSetThreadIdType", code)?;
        // SAFETY: both callbacks have these signatures and live for good.
        let code = unsafe {
            (functions.activity_register_callbacks)(buffers::requested, buffers::completed)
        };
        check("cuptiActivityRegisterCallbacks", code)?;
        let explains = explain::is_wanted(tier);
        let latency = explains && explain::enable_latency(library);
        process::watch_forks();
        let hooked = process::hook();

        // From here on callbacks come, and CUPTI asks for buffers.
        let number = state::switch_on();
        // Before there is any record whose name could go.
        watch_unloading(library, subscriber);
        // Before any graph is made that is launched while recorded.
        graph::watch(library, subscriber);
        let self_test = SelfTest::open();
        let started = HostNanos(clock());
        for (kind, _) in KINDS {
            // SAFETY: takes a number.
            let code = unsafe { (functions.activity_enable)(kind) };
            check("cuptiActivityEnable", code)?;
        }
        for kind in OPTIONAL_KINDS {
            // SAFETY: takes a number. A library that does not know the kind says so, and that is all.
            unsafe { (functions.activity_enable)(kind) };
        }
        if options.graph_level {
            // SAFETY: takes a number.
            let code = unsafe { (functions.activity_enable)(kind::GRAPH_TRACE) };
            check("cuptiActivityEnable", code)?;
        }
        let chosen = options.recorded_calls != RecordedCalls::All && choose_calls(library);
        if !chosen {
            for (kind, _) in API_KINDS {
                // SAFETY: takes a number.
                let code = unsafe { (functions.activity_enable)(kind) };
                check("cuptiActivityEnable", code)?;
            }
        }
        watch_driver_calls(library, subscriber)?;
        let collected = explains.then(|| explain::enable(library, number, chosen, latency));

        let own_kind = options.external_kind.number();
        let names = Names::new(Box::new(move |domain, cbid| {
            callback_name(library, domain, cbid)
        }));
        let mut session = Self {
            library,
            number,
            clock,
            decoder: Decoder::new(
                number,
                library.version(),
                own_kind,
                names,
                &unload::NAMES,
                explains,
            ),
            due: Vec::new(),
            fences: Vec::new(),
            self_test,
            started,
            recorded_calls: options.recorded_calls,
            chosen,
            describes_devices: explains,
        };
        // Without the hook nothing is ever pushed, so nothing can come.
        let external_correlation = if hooked {
            None
        } else {
            session.self_test.close();
            Some(false)
        };
        session.due.push(session.describe(external_correlation));
        session.due.extend(collected.map(Event::from));
        session.describe_devices();
        Ok(session)
    }

    /// As soon as there are devices, and once.
    fn describe_devices(&mut self) {
        if self.describes_devices
            && let Some(devices) = devices::describe()
        {
            self.describes_devices = false;
            self.due.extend(devices.into_iter().map(Event::from));
        }
    }

    fn describe(&self, external_correlation: Option<bool>) -> Event {
        DeviceSession::Started {
            session: self.number,
            version: self.library.version(),
            at: self.started,
            external_correlation,
        }
        .into()
    }

    fn now(&self) -> HostNanos {
        HostNanos((self.clock)())
    }

    fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
        for event in self.due.drain(..) {
            out(Observation::live(event));
        }
        if unload::take_asked() {
            // A thread waits, which is about to unload modules. It makes no fence: what the rings held
            // when it returned was not read before.
            // SAFETY: takes a number. Called on the drain thread, never in a callback.
            unsafe { (self.library.functions().activity_flush_all)(0) };
        }
        // Taken before the buffers are: all that completed before these fences is among them.
        let fences = std::mem::take(&mut self.fences);
        let mut scopes = vec![(null_mut(), 0)];
        let mut lost = Tally::default();
        let mut stale = 0;
        let mut verdict = None;
        let completed = buffers::take_completed();
        if !completed.is_empty() {
            // Something was done, so the driver is initialised.
            self.describe_devices();
            self.due
                .drain(..)
                .for_each(|event| out(Observation::live(event)));
        }
        // After the buffers are taken, and before they are decoded: what happened to a graph before any of
        // their operations is known before it.
        let mut lost_changes = 0;
        for event in graph::take() {
            if let GraphChange::Lost { count } = &event.change {
                lost_changes += *count;
            }
            out(Observation::live(event));
        }
        let look_for_drops =
            !completed.is_empty() || !fences.is_empty() || buffers::take_denied() > 0;
        for buffer in completed {
            if !scopes.contains(&buffer.scope()) {
                scopes.push(buffer.scope());
            }
            if buffer.session() != self.number {
                // Its correlation ids are another session's, and may have been given anew.
                stale += self.count(&buffer).records;
                continue;
            }
            let tally = self.decode(&buffer, &mut verdict, out);
            lost.undecodable += tally.undecodable;
            lost.tails += tally.tails;
        }
        lost.undecodable += buffers::take_foreign();
        if let Some(comes) = verdict {
            let event = self.describe(Some(comes));
            out(Observation::live(event));
            if !comes {
                self.record_all_calls_if_asked();
            }
        }
        let from_cupti = if look_for_drops {
            self.dropped_by_cupti(&scopes)
        } else {
            0
        };
        let at = self.now();
        for (site, count) in [
            (DropSite::CuptiBuffer, from_cupti),
            (DropSite::BufferTail, lost.tails),
            (DropSite::BufferQueue, stale),
            (DropSite::Undecodable, lost.undecodable),
            (DropSite::GraphQueue, lost_changes),
            (DropSite::CallbackPanic, state::take_panics()),
        ] {
            if count > 0 {
                out(Observation::live(Dropped { site, count, at }));
            }
        }
        for fence in fences {
            out(Observation::live(fence));
        }
    }

    fn decode(
        &mut self,
        buffer: &buffers::Completed,
        verdict: &mut Option<bool>,
        out: &mut dyn FnMut(Observation),
    ) -> Tally {
        let next = self.library.functions().activity_get_next_record;
        let self_test = &mut self.self_test;
        let mut give_on = |event: Event| {
            *verdict = verdict.or_else(|| self_test.saw(&event));
            out(Observation::live(event));
        };
        // SAFETY: CUPTI completed the buffer, and `buffer` owns it until it is dropped. Names are there
        // until a module goes, which `unload` lets happen only when the buffer is decoded or its names
        // are not to be read.
        unsafe {
            self.decoder.buffer(
                next,
                buffer.start(),
                buffer.valid(),
                buffer.lent(),
                &mut give_on,
            )
        }
    }

    fn count(&self, buffer: &buffers::Completed) -> Tally {
        let next = self.library.functions().activity_get_next_record;
        // SAFETY: CUPTI completed the buffer, and `buffer` owns it until it is dropped.
        unsafe {
            decode::count_records(next, buffer.start(), buffer.valid(), self.library.version())
        }
    }

    /// CUPTI's own count of records it had no room for. It is reset by being read.
    fn dropped_by_cupti(&self, scopes: &[(*mut c_void, u32)]) -> u64 {
        let ask = self.library.functions().activity_get_num_dropped_records;
        let mut total = 0;
        for &(context, stream) in scopes {
            let mut dropped = 0;
            // SAFETY: a context that CUPTI named (always null since CUDA 6.0), and a valid place.
            let code = unsafe { ask(context, stream, &mut dropped) };
            if code == result::SUCCESS {
                total += dropped as u64;
            }
        }
        total
    }

    fn record_all_calls_if_asked(&mut self) {
        if self.recorded_calls != RecordedCalls::LaunchesOrAll || !self.chosen {
            return;
        }
        self.chosen = false;
        for (kind, _) in API_KINDS {
            // SAFETY: takes a number. If it fails, the chosen calls are recorded as before.
            unsafe { (self.library.functions().activity_enable)(kind) };
        }
        self.self_test = SelfTest::open();
    }

    /// `FlushAll(0)`: every buffer whose records are all complete comes back before it returns.
    fn flush(&mut self) {
        let asked = self.now();
        // SAFETY: takes a number. Called on the drain thread, never in a callback.
        let code = unsafe { (self.library.functions().activity_flush_all)(0) };
        // A fence is only what was granted.
        if code == result::SUCCESS {
            self.fences.push(Flushed {
                session: self.number,
                asked,
                returned: self.now(),
                last: false,
            });
        }
    }

    /// Flushes until CUPTI holds no buffer, or gives none back any more, or time is up.
    fn stop(mut self, within: Duration, out: &mut dyn FnMut(Observation)) {
        let began = Instant::now();
        // How long nothing may come before we believe that nothing will.
        let patience = (within / 4).clamp(Duration::from_millis(20), Duration::from_millis(500));
        let mut last_came = began;
        let mut pause = Duration::from_micros(200);
        let mut asked = self.now();
        loop {
            let before = buffers::completions();
            asked = self.now().max(asked);
            // SAFETY: takes a number.
            unsafe { (self.library.functions().activity_flush_all)(0) };
            self.drain(out);
            let now = Instant::now();
            if buffers::completions() != before {
                last_came = now;
                pause = Duration::from_micros(200);
            }
            if buffers::lent() == 0
                || now.duration_since(began) + pause > within
                || now.duration_since(last_came) > patience
            {
                break;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(10));
        }
        if buffers::lent() > 0 {
            // Only here, where nothing will be read later: what is incomplete comes without its end.
            // SAFETY: takes a number.
            unsafe { (self.library.functions().activity_flush_all)(codes::FLUSH_FORCED) };
        }
        // Once callbacks are off, unloading is not seen, and names are not read.
        self.drain(out);
        state::switch_off();
        disable_all(self.library);
        unsubscribe(self.library);
        self.self_test.close();
        self.fences.push(Flushed {
            session: self.number,
            asked,
            returned: self.now(),
            last: true,
        });
        self.drain(out);
        let ended = DeviceSession::Ended {
            session: self.number,
            at: self.now(),
        };
        out(Observation::live(ended));
        // Dropping it leaves the claim.
    }
}

impl Drop for Session {
    /// Leaves the process to the next session. Nothing of CUPTI's is called, since it might block:
    /// in a session that was not stopped, callbacks return at once from now on, and the subscription
    /// is given up when the next session starts.
    fn drop(&mut self) {
        state::switch_off();
        state::unclaim();
    }
}

/// Gives the subscription up; `false` if there was none.
fn unsubscribe(library: &Library) -> bool {
    let subscriber = SUBSCRIBER.swap(null_mut(), AcqRel);
    if subscriber.is_null() {
        return false;
    }
    // SAFETY: `cuptiSubscribe` of this library answered this handle, and it is passed on once.
    unsafe { (library.functions().unsubscribe)(subscriber) };
    true
}

/// The callback itself, so that its cost can be measured without CUPTI's.
#[doc(hidden)]
pub fn api_callback() -> crate::sys::ApiCallback {
    callback::api_call
}

fn callback_name(library: &Library, domain: u32, cbid: u32) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: a valid place for the pointer.
    let code = unsafe { (library.functions().get_callback_name)(domain, cbid, &mut name) };
    if code != result::SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: CUPTI answered with success, so this is one of its constant, terminated names.
    Some(
        unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned(),
    )
}

impl EvidenceSource for Cupti {
    fn start(&mut self, context: SourceContext) -> Result<(), NoEvidence> {
        // A session of this very source that was not stopped ends here.
        self.session = None;
        match Session::start(&self.options, context.clock, context.tier) {
            Ok(session) => {
                self.session = Some(session);
                Ok(())
            }
            Err(error) => Err(NoEvidence::new(error.to_string())),
        }
    }

    fn drain(&mut self, out: &mut dyn FnMut(Observation)) {
        if let Some(session) = live(&mut self.session) {
            session.drain(out);
        }
    }

    fn flush(&mut self) {
        if let Some(session) = live(&mut self.session) {
            session.flush();
        }
    }

    fn stop(&mut self, within: Duration, out: &mut dyn FnMut(Observation)) {
        if live(&mut self.session).is_some()
            && let Some(session) = self.session.take()
        {
            session.stop(within, out);
        }
    }
}

/// The session, if it belongs to this process and not to the one that this was forked from.
fn live(session: &mut Option<Session>) -> Option<&mut Session> {
    session.as_mut().filter(|_| !state::is_forked_child())
}
