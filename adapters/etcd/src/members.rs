//! The cluster's members, and which of them is spoken to.
//!
//! The driver's own balancing goes on sending calls to a member that cannot be reached or stands
//! still. So each member has a client of its own, one of them is spoken to at a time, and trouble
//! with it means that the next is tried: at once where nothing can have been done yet, and by later
//! calls where nobody knows.

use std::sync::atomic::{AtomicUsize, Ordering};

use etcd_client::{Client, ConnectOptions, Error};
use tokio::sync::OnceCell;

use crate::config::EtcdConfig;

/// Which of a member's two connections a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Transactions and all other calls.
    Calls,
    /// Keep-alives with the looks that confirm them, and the watch: a flood of transactions does not
    /// hold them up.
    Beats,
}

/// All members.
pub(crate) struct Members {
    all: Vec<Member>,
    current: AtomicUsize,
    options: ConnectOptions,
}

struct Member {
    endpoint: String,
    calls: OnceCell<Client>,
    beats: OnceCell<Client>,
}

impl Members {
    /// Nobody is connected yet.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn of(config: &EtcdConfig) -> Result<Self, Error> {
        if config.endpoints.is_empty() {
            return Err(Error::InvalidArgs("there is no address of a member".to_owned()));
        }
        let member = |endpoint: &String| Member {
            endpoint: endpoint.clone(),
            calls: OnceCell::new(),
            beats: OnceCell::new(),
        };
        Ok(Self {
            all: config.endpoints.iter().map(member).collect(),
            current: AtomicUsize::new(0),
            options: config.options(),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The one that is spoken to.
    pub(crate) fn current(&self) -> usize {
        self.current.load(Ordering::Relaxed)
    }

    /// There was trouble with this one: the next is spoken to, unless somebody was quicker.
    pub(crate) fn leave(&self, member: usize) {
        let next = (member + 1) % self.all.len();
        let left =
            self.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
        if left.is_ok() && next != member {
            tracing::debug!(member, next, "another member of etcd is spoken to from now on");
        }
    }

    /// A member's client. It connects with its first call; only where there is a user it is let in
    /// before.
    ///
    /// # Errors
    /// An address or a certificate that is none; where there is a user, whatever keeps it out.
    pub(crate) async fn client(&self, member: usize, line: Line) -> Result<Client, Error> {
        let Some(member) = self.all.get(member) else {
            return Err(Error::InvalidArgs("there is no such member".to_owned()));
        };
        let cell = match line {
            Line::Calls => &member.calls,
            Line::Beats => &member.beats,
        };
        let connect = || Client::connect([&member.endpoint], Some(self.options.clone()));
        cell.get_or_try_init(connect).await.cloned()
    }
}
