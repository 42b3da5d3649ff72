#!/bin/sh
# A signed call with curl and openssl alone. Usage: first_call.sh URL KEY_ID SECRET [curl options]
# URL has a host, a path and perhaps a query; SECRET is base64url, as `release add` printed it.
set -eu
url=$1 key_id=$2 secret=$3
shift 3

rest=${url#*://}
authority=${rest%%/*}
path=/${rest#*/} path=${path%%\?*}
case $url in *\?*) query="?${url#*\?}" ;; *) query='?' ;; esac
key=$(printf '%s=' "$secret" | tr -- -_ +/ | openssl base64 -d -A | od -An -tx1 | tr -d ' \n')

parameters='("@method" "@authority" "@path" "@query" "countersign-release")'
parameters="$parameters;created=$(date +%s);nonce=\"$(openssl rand -hex 16)\";keyid=\"$key_id\""
parameters="$parameters;alg=\"hmac-sha256\";tag=\"countersign\""

signature=$(printf '"@method": GET\n"@authority": %s\n"@path": %s\n"@query": %s\n"countersign-release": %s\n"@signature-params": %s' \
    "$authority" "$path" "$query" "$key_id" "$parameters" |
    openssl dgst -sha256 -mac HMAC -macopt "hexkey:$key" -binary | openssl base64 -A)

curl --silent --show-error "$@" "$url" \
    -H "Countersign-Release: $key_id" \
    -H "Signature-Input: app=$parameters" \
    -H "Signature: app=:$signature:"
