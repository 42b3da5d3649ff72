#!/bin/sh
# Serves the sample app's backend behind a gateway (script/serve), and writes the app's settings to
# .countersign/demo/Notes.json. Options go to `countersign serve`. Ctrl-C ends both.
set -eu
cd "$(dirname "$0")/../.."
countersign=.build/serve/countersign
data=${COUNTERSIGN_DATA:-.countersign}
previous=
for option in "$@"; do
    [ "$previous" != --data ] || data=$option
    previous=$option
done
export COUNTERSIGN_DATA="$data"

umask 077
work=$(mktemp -d)
backend='' gateway=''
stop() {
    for process in $gateway $backend; do
        kill "$process" 2>/dev/null || true
        wait "$process" || true
    done
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Waits until a line of $1 begins with $2, and prints the rest of that line. $3 is the process that writes it.
wait_for() {
    until grep -q "^$2" "$1"; do
        # A process that has ended still has its id until this shell waits for it.
        kill -0 "$3" 2>/dev/null && ! grep -qs '^State:.Z' "/proc/$3/status" || return 1
        sleep 0.05
    done
    sed -n "s|^$2||p" "$1" | head -n 1
}

python3 -B Examples/Notes/backend.py --port 0 >"$work/backend" &
backend=$!
upstream=$(wait_for "$work/backend" 'listening on ' "$backend")

script/serve --upstream "$upstream" "$@" >"$work/gateway" &
gateway=$!
url=$(wait_for "$work/gateway" 'listening on ' "$gateway")
wait_for "$work/gateway" 'Refused' "$gateway" >/dev/null
pin=$(sed -n 's/^spki_pin //p' "$work/gateway")
[ -n "$pin" ] || { echo "serve.sh: the app needs TLS, and a pin; expected no --tls off" >&2; exit 1; }

# Users sign up in the app, an account is signed in on one device at a time, and /notes needs a session.
"$countersign" app policy demo --set registration=open --set slots=single >/dev/null
"$countersign" route set demo /notes --require session >/dev/null

# The pin of a second key, which replaces the server's when that is lost. In production it is kept elsewhere.
profile=$data/demo
spare=$profile/spare-key.pem
[ -s "$spare" ] || openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$spare" 2>/dev/null
openssl pkey -in "$spare" -pubout -outform DER -out "$work/spare"
backup=sha256/$(openssl dgst -sha256 -binary "$work/spare" | openssl base64 -A)

field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p" "$profile/release.json"; }
cat >"$profile/Notes.json" <<END
{
  "url": "$url",
  "app": "demo",
  "key_id": "$(field key_id)",
  "secret": "$(field secret)",
  "authority_key": "$(field authority_key)",
  "next_authority_key": "$(field next_authority_key)",
  "pins": ["$pin"],
  "backup_pins": ["$backup"]
}
END

cat <<END
listening on $url
The app's settings are in $profile/Notes.json. On this machine, in another terminal:
  swift run notes --settings $profile/Notes.json
END
wait "$gateway"
gateway=''
