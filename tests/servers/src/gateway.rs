//! What a member says of itself over HTTP: etcd answers JSON beside its own protocol.

use std::{net::SocketAddrV4, time::Duration};

use serde_json::{Value, json};
use ureq::Agent;

/// How long an answer may take. A paused member never answers.
const PATIENCE: Duration = Duration::from_secs(2);

/// One member's.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    agent: Agent,
    base: String,
}

/// What a member says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    /// Its own id.
    pub member: u64,
    /// The id of the leader it knows; 0 if none.
    pub leader: u64,
    /// The term of that leader.
    pub term: u64,
    /// The revision it is at.
    pub revision: u64,
}

impl Gateway {
    /// The one of the member that listens there.
    pub(crate) fn at(address: SocketAddrV4) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            // What the environment says of proxies is not meant for this machine itself.
            .proxy(None)
            .max_idle_connections(0)
            .http_status_as_error(false)
            .build();
        Self { agent: config.into(), base: format!("http://{address}") }
    }

    /// The address that clients use.
    pub(crate) fn endpoint(&self) -> &str {
        &self.base
    }

    /// Whether it serves: it knows a leader and has applied what it must.
    pub(crate) fn is_healthy(&self) -> bool {
        let answer = self.agent.get(format!("{}/health", self.base)).call();
        let body = answer.ok().and_then(|mut reply| reply.body_mut().read_json::<Value>().ok());
        body.is_some_and(|body| body["health"] == "true")
    }

    /// What it says of itself; nothing if it does not answer.
    pub(crate) fn status(&self) -> Option<Status> {
        status(&self.post("/v3/maintenance/status", &json!({}))?)
    }

    /// Forgets what was before a revision, and waits until that is done.
    pub(crate) fn compact(&self, revision: u64) -> bool {
        let wish = json!({ "revision": revision.to_string(), "physical": true });
        self.post("/v3/kv/compaction", &wish).is_some_and(|reply| reply.get("error").is_none())
    }

    fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let answer = self.agent.post(format!("{}{path}", self.base)).send_json(body);
        answer.ok()?.body_mut().read_json().ok()
    }
}

/// Reads a status. Numbers of 64 bits are strings there, and what is 0 is left out.
fn status(reply: &Value) -> Option<Status> {
    let number = |value: &Value| match value {
        Value::Null => Some(0),
        value => value.as_str()?.parse().ok(),
    };
    let header = &reply["header"];
    Some(Status {
        member: number(&header["member_id"]).filter(|member| *member != 0)?,
        leader: number(&reply["leader"])?,
        term: number(&header["raft_term"])?,
        revision: number(&header["revision"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_also_where_nobody_leads() {
        let reply = json!({
            "header": { "member_id": "9372538179322589801", "revision": "7", "raft_term": "2" },
            "leader": "9372538179322589801",
        });
        let led = 9_372_538_179_322_589_801;
        let expected = Status { member: led, leader: led, term: 2, revision: 7 };
        assert_eq!(status(&reply), Some(expected));
        let alone = json!({ "header": { "member_id": "5", "raft_term": "3" } });
        assert_eq!(status(&alone), Some(Status { member: 5, leader: 0, term: 3, revision: 0 }));
        assert_eq!(status(&json!({ "error": "etcdserver: no leader" })), None);
    }
}
