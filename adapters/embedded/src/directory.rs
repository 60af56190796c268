//! Listing what is held.

use async_trait::async_trait;
use dlock_domain::{Deadline, Result};
use dlock_ports::{Directory, ListRequest, Page};

use crate::{Inner, reads};

#[async_trait]
impl Directory for Inner {
    async fn list(&self, request: ListRequest, by: Deadline) -> Result<Page> {
        let page = self.reader.call(by, move |tx| reads::list(tx, &request)).await?;
        let locks = page.locks.into_iter().map(|info| self.with_waiters(info)).collect();
        Ok(Page { locks, next: page.next })
    }
}
