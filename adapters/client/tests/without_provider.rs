//! What a process that has not set itself up is told, instead of a panic.
#![expect(clippy::unwrap_used, reason = "a test that meets a surprise ends there")]

use core::time::Duration;
use std::sync::Arc;

use async_trait::async_trait;
use dlock_client::{ConfigError, RemoteConfig, RemoteLocks, ServerUrl};
use dlock_domain::{Moment, WallTime};
use dlock_ports::{Clock, Entropy};

struct Fixed;

#[async_trait]
impl Clock for Fixed {
    fn now(&self) -> Moment {
        Moment::from_nanos(0)
    }
    fn wall(&self) -> WallTime {
        WallTime::from_unix_millis(0)
    }
    async fn sleep_until(&self, _: Moment) {}
}

impl Entropy for Fixed {
    fn bits(&self) -> u128 {
        0
    }
    fn jitter(&self) -> u64 {
        0
    }
}

fn client(config: RemoteConfig) -> Result<RemoteLocks, ConfigError> {
    RemoteLocks::new(config, Arc::new(Fixed), Arc::new(Fixed))
}

fn config() -> RemoteConfig {
    RemoteConfig::new(vec![ServerUrl::parse("http://127.0.0.1:7420").unwrap()])
}

#[test]
fn outside_a_runtime_there_is_no_client() {
    assert!(matches!(client(config()), Err(ConfigError::NoRuntime)));
}

#[tokio::test]
async fn without_a_tls_provider_there_is_no_client() {
    assert!(matches!(client(config()), Err(ConfigError::NoTlsProvider)));
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused() {
    assert!(matches!(client(RemoteConfig::new(vec![])), Err(ConfigError::NoServer)));
    let instant = RemoteConfig { call_timeout: Duration::ZERO, ..config() };
    assert!(matches!(client(instant), Err(ConfigError::ZeroTimeout)));
    let mut never = config();
    never.retry.max_tries = 0;
    assert!(matches!(client(never), Err(ConfigError::NoTries)));
}
