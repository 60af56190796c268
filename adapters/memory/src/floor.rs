//! Raising token floors: the port [`FloorControl`].

use async_trait::async_trait;
use dlock_domain::{
    Deadline, LockKey, Namespace, Result, TokenFloor,
    lock::{Effect, LockEvent},
};
use dlock_ports::{FloorControl, Raised};

use crate::{At, MemoryStore, state::State};

#[async_trait]
impl FloorControl for MemoryStore {
    async fn raise(
        &self,
        namespace: &Namespace,
        at_least: TokenFloor,
        by: Deadline,
    ) -> Result<Raised> {
        self.enter(by, |state, at| state.raise(namespace, at_least, at))
    }
}

impl State {
    fn raise(&mut self, namespace: &Namespace, at_least: TokenFloor, at: At) -> Result<Raised> {
        at_least.check_leap(self.counter)?;
        self.counter = self.counter.max(at_least.get());
        let floor = TokenFloor::new(self.counter)?;
        self.floors.insert(namespace.clone(), floor);
        let keys: Vec<LockKey> = self
            .locks
            .get(namespace)
            .into_iter()
            .flat_map(|locks| locks.keys())
            .map(|name| LockKey::new(namespace.clone(), name.clone()))
            .collect();
        let mut grants_ended = 0;
        for key in &keys {
            // A grant whose lease had ended was over already and is not counted.
            self.meet(key, at.now);
            if let Effect::Ended(_) = self.apply(key, LockEvent::FloorRaised(floor)) {
                grants_ended += 1;
            }
        }
        Ok(Raised { floor, grants_ended })
    }
}
