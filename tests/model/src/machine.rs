//! How sequences are drawn.

use dlock_ports::Intent;
use proptest::{collection, option, prelude::*, sample, strategy::Union};
use proptest_state_machine::ReferenceStateMachine;

use crate::{
    op::{AtLeast, Id, Op, Reply, Sess, Step, Tok, Who},
    world,
};

/// Draws steps; its state is only what makes a step worth drawing.
pub(crate) struct Machine;

/// What has been tried so far. Nothing is forbidden by it: a step means something in any state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tried {
    /// The slots that a session was opened in.
    slots: Vec<u8>,
    /// The last shot at a lock: whose, and by which name.
    shot: Option<(u8, Who, u8)>,
}

impl ReferenceStateMachine for Machine {
    type State = Tried;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Tried> {
        Just(Tried::default()).boxed()
    }

    fn transitions(tried: &Tried) -> BoxedStrategy<Step> {
        // Until something was opened and taken, the rest mostly meets nothing.
        let opening = if tried.slots.is_empty() { 12 } else { 3 };
        let taking = if tried.shot.is_none() { 24 } else { 12 };
        let op = Union::new_weighted(vec![
            (opening, open().boxed()),
            (taking, insert(tried).boxed()),
            (4, (key(), token()).prop_map(|(key, token)| Op::Delete { key, token }).boxed()),
            (3, (key(), token()).prop_map(|(key, token)| Op::Extend { key, token }).boxed()),
            (4, keep_alive(tried).boxed()),
            (3, forget(tried).boxed()),
            (2, session(tried).prop_map(Op::Close).boxed()),
            (2, session(tried).prop_map(Op::Look).boxed()),
            (2, revoke().boxed()),
            (2, key().prop_map(|key| Op::Read { key }).boxed()),
            (1, sample::select(vec![0, 1, 9]).prop_map(|limit| Op::Reap { limit }).boxed()),
            (1, raise().boxed()),
            (3, list().boxed()),
            (1, Just(Op::Audit).boxed()),
            (5, advance().boxed()),
        ]);
        let reply = prop_oneof![
            16 => Just(Reply::Arrives),
            3 => Just(Reply::Lost),
            2 => Just(Reply::Dropped),
            1 => Just(Reply::TooLate),
        ];
        (op, reply).prop_map(|(op, reply)| Step { op, reply }).boxed()
    }

    fn apply(mut tried: Tried, step: &Step) -> Tried {
        match step.op {
            Op::Open { slot, .. } if !tried.slots.contains(&slot) => tried.slots.push(slot),
            Op::Insert { key, who, attempt, .. } => tried.shot = Some((key, who, attempt)),
            _ => {}
        }
        tried
    }
}

fn key() -> impl Strategy<Value = u8> {
    // The first key gets most of it, so that things happen to the same lock.
    prop_oneof![1 => Just(0), 1 => 0..world::KEYS]
}

fn slot() -> impl Strategy<Value = u8> {
    0..world::SLOTS
}

/// A slot that something was opened in, mostly.
fn used_slot(tried: &Tried) -> BoxedStrategy<u8> {
    if tried.slots.is_empty() {
        return slot().boxed();
    }
    prop_oneof![7 => sample::select(tried.slots.clone()), 1 => slot()].boxed()
}

fn owner() -> impl Strategy<Value = u8> {
    0..world::OWNERS
}

fn ttl() -> impl Strategy<Value = u8> {
    0..world::TTLS
}

fn token() -> impl Strategy<Value = Tok> {
    prop_oneof![
        8 => Just(Tok::Known(0)),
        4 => (1_u8..4).prop_map(Tok::Known),
        2 => (0..world::KEYS).prop_map(Tok::OfKey),
        1 => Just(Tok::NeverGranted),
    ]
}

fn session(tried: &Tried) -> impl Strategy<Value = Sess> + use<> {
    prop_oneof![3 => used_slot(tried).prop_map(Sess::Slot), 1 => key().prop_map(Sess::OfLock)]
}

fn who(tried: &Tried) -> impl Strategy<Value = Who> + use<> {
    let private = (owner(), ttl()).prop_map(|(owner, ttl)| Who::Private { owner, ttl });
    prop_oneof![2 => used_slot(tried).prop_map(Who::Slot), 1 => private]
}

/// A shot at a lock: any, or the last one once more, or the last one's name in another's mouth.
fn shot(tried: &Tried) -> BoxedStrategy<(u8, Who, u8)> {
    let any = (key(), who(tried), 0..world::ATTEMPTS);
    let Some((key, own, attempt)) = tried.shot else { return any.boxed() };
    let other = who(tried).prop_map(move |who| (key, who, attempt));
    prop_oneof![4 => any, 2 => Just((key, own, attempt)), 1 => other].boxed()
}

fn open() -> impl Strategy<Value = Op> {
    let id = prop_oneof![2 => Just(Id::Fresh), 2 => Just(Id::Same), 1 => Just(Id::Drawn)];
    (slot(), owner(), ttl(), id).prop_map(|(slot, owner, ttl, id)| Op::Open {
        slot,
        owner,
        ttl,
        id,
    })
}

fn insert(tried: &Tried) -> impl Strategy<Value = Op> + use<> {
    let intent = prop_oneof![6 => Just(Intent::Acquire), 1 => Just(Intent::Recover)];
    (shot(tried), intent).prop_map(|((key, who, attempt), intent)| Op::Insert {
        key,
        who,
        attempt,
        intent,
    })
}

fn forget(tried: &Tried) -> impl Strategy<Value = Op> + use<> {
    shot(tried).prop_map(|(key, who, attempt)| Op::Forget { key, who, attempt })
}

fn keep_alive(tried: &Tried) -> impl Strategy<Value = Op> + use<> {
    (session(tried), collection::vec((key(), token()), 0..3))
        .prop_map(|(session, held)| Op::KeepAlive { session, held })
}

fn revoke() -> impl Strategy<Value = Op> {
    (key(), option::of(token())).prop_map(|(key, expected)| Op::Revoke { key, expected })
}

fn raise() -> impl Strategy<Value = Op> {
    let at_least =
        sample::select(vec![AtLeast::Nothing, AtLeast::Above, AtLeast::Above, AtLeast::TooFar]);
    (0..world::NAMESPACES, at_least)
        .prop_map(|(namespace, at_least)| Op::Raise { namespace, at_least })
}

fn list() -> impl Strategy<Value = Op> {
    let after = option::of(0..index_end(world::AFTERS.len()));
    (
        0..world::NAMESPACES,
        0..index_end(world::PREFIXES.len()),
        after,
        0..index_end(world::PAGES.len()),
    )
        .prop_map(|(namespace, prefix, after, page)| Op::List {
            namespace,
            prefix,
            after,
            page,
        })
}

fn advance() -> impl Strategy<Value = Op> {
    sample::select(world::ADVANCES_MILLIS.to_vec()).prop_map(|millis| Op::Advance { millis })
}

fn index_end(len: usize) -> u8 {
    u8::try_from(len).unwrap_or(u8::MAX)
}
