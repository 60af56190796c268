//! The etcd store, as configured.

use std::{path::Path, sync::Arc};

use dlock_etcd::{ConnectError, EtcdConfig, EtcdStore, Tls, User};
use dlock_ports::{Backend, Clock, Entropy};

use crate::{config::etcd::EtcdPlace, run::exit};

/// Connects to the cluster; whether it is there shows with the first call.
///
/// # Errors
/// A file that cannot be read, an address that is none, a user who is not let in; each as an exit code
/// and in words.
pub(crate) async fn connect(
    place: &EtcdPlace,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Backend, (u8, String)> {
    let config = configured(place).map_err(|message| (exit::UNREACHABLE, message))?;
    let store = EtcdStore::connect(config, clock, entropy).await;
    Ok(store.map_err(|error| said(&error))?.backend())
}

fn said(error: &ConnectError) -> (u8, String) {
    match error {
        ConnectError::Denied { .. } => (
            exit::DENIED,
            format!("{error}; see to etcd.username and etcd.password_file, or to the user's roles"),
        ),
        ConnectError::Cluster { .. } | ConnectError::StateFile(_) => {
            (exit::UNREACHABLE, error.to_string())
        }
    }
}

fn configured(place: &EtcdPlace) -> Result<EtcdConfig, String> {
    let mut config = EtcdConfig::at(place.endpoints.clone());
    config.prefix.clone_from(&place.prefix);
    config.state_file.clone_from(&place.state_file);
    // What belongs together was found together when the configuration was read.
    if let (Some(name), Some(file)) = (&place.username, &place.password_file) {
        let password = text(file, "etcd.password_file")?;
        let password = password.strip_suffix('\n').unwrap_or(&password);
        let password = password.strip_suffix('\r').unwrap_or(password).to_owned();
        config.user = Some(User { name: name.clone(), password });
    }
    let identity = match (&place.cert_file, &place.key_file) {
        (Some(certificate), Some(key)) => {
            Some((bytes(certificate, "etcd.tls.cert_file")?, bytes(key, "etcd.tls.key_file")?))
        }
        _ => None,
    };
    let authority =
        place.ca_file.as_deref().map(|file| bytes(file, "etcd.tls.ca_file")).transpose()?;
    let server_name = place.server_name.clone();
    if authority.is_some() || identity.is_some() || server_name.is_some() {
        config.tls = Some(Tls { authority, identity, server_name });
    }
    Ok(config)
}

fn bytes(file: &Path, key: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{key}: {}: {error}", file.display()))
}

fn text(file: &Path, key: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{key}: {}: {error}", file.display()))
}
