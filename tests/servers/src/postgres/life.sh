# One life of a server, on this machine or in a container: makes its data if there are none, takes
# what was put back, and becomes the server. Arguments are the server's.
set -eu
umask 077
for programs in /usr/lib/postgresql/*/bin "${SERVER_PROGRAMS:-}"; do
  [ ! -x "$programs/postgres" ] || PATH=$programs:$PATH
done
data=$SERVER_FOLDER/data
mkdir -p "$SERVER_FOLDER/put-back"
if [ -d "$SERVER_FOLDER/put-back/data" ]; then
  # A server that was killed leaves a memory segment to the system, whose number stands there.
  [ ! -e "$data/postmaster.pid" ] || ipcrm -m "$(sed -n '7s/.* //p' "$data/postmaster.pid")" || true
  rm -rf "$data"
  mv "$SERVER_FOLDER/put-back/data" "$data"
fi
if [ ! -e "$SERVER_FOLDER/made" ]; then
  rm -rf "$data"
  printf '%s\n' "$SERVER_PASSWORD" >"$SERVER_FOLDER/password"
  # Texts are in the order of a language: an order that somebody forgot to ask for is seen.
  initdb --pgdata="$data" --username=postgres --pwfile="$SERVER_FOLDER/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C --locale-provider=icu --icu-locale=en \
    --no-sync >/dev/null
  printf '%s\n' "$SERVER_SETTINGS" >>"$data/postgresql.conf"
  if [ -n "$SERVER_KEY" ]; then
    printf '%s\n' "$SERVER_AUTHORITY" >"$data/authority.crt"
    # Before the lines that are there: the first that fits counts.
    { printf '%s\n' "hostssl all $SERVER_CERTIFIED all cert" "host all $SERVER_CERTIFIED all reject"
      cat "$data/pg_hba.conf"; } >"$data/pg_hba.new"
    mv "$data/pg_hba.new" "$data/pg_hba.conf"
    printf '%s\n' "$SERVER_KEY" >"$data/server.key"
    printf '%s\n' "$SERVER_CERTIFICATE" >"$data/server.crt"
    printf '%s\n' 'ssl = on' "ssl_ca_file = 'authority.crt'" >>"$data/postgresql.conf"
  fi
  printf 'host all all all scram-sha-256\n' >>"$data/pg_hba.conf"
  : >"$SERVER_FOLDER/made"
fi
unset SERVER_PASSWORD SERVER_KEY
exec postgres -D "$data" "$@"
