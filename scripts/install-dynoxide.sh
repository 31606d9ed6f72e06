#!/bin/sh
# Installs the DynamoDB-compatible server that the tests run against as .tools/bin/dynoxide, unless that version is
# there already. The package's name ends in the platform's; npm checks what it fetched against the registry's digest.
set -eu

version=1.2.1
root=$(cd "$(dirname "$0")/.." && pwd)
binary=$root/.tools/bin/dynoxide

if [ "$("$binary" --version 2>/dev/null || true)" = "dynoxide $version" ]; then
	exit 0
fi

if ! command -v npm >/dev/null 2>&1; then
	echo "install-dynoxide: npm is not installed. Install Node.js (it brings npm), or point ONCEKIT_DYNAMODB_ENDPOINT" >&2
	echo "at a DynamoDB endpoint of your own and no server is needed." >&2
	exit 1
fi

case $(uname -s) in
Linux) system=linux ;;
Darwin) system=darwin ;;
*) system=$(uname -s | tr '[:upper:]' '[:lower:]') ;;
esac
case $(uname -m) in
x86_64 | amd64) machine=x64 ;;
aarch64 | arm64) machine=arm64 ;;
*) machine=$(uname -m) ;;
esac
package=@dynoxide/$system-$machine

# A folder of its own and one rename: two installations at a time do not see each other's half.
mkdir -p "$root/.tools/bin"
work=$(mktemp -d "$root/.tools/install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM # by way of EXIT
if ! npm install --prefix "$work" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
	"$package@$version" >"$work/log" 2>&1; then
	cat "$work/log" >&2
	echo "install-dynoxide: npm could not install $package@$version. Without a server for this platform, point" >&2
	echo "ONCEKIT_DYNAMODB_ENDPOINT at a DynamoDB endpoint of your own." >&2
	exit 1
fi
chmod +x "$work/node_modules/$package/dynoxide"
mv "$work/node_modules/$package/dynoxide" "$binary"

found=$("$binary" --version)
if [ "$found" != "dynoxide $version" ]; then
	echo "install-dynoxide: $binary says it is \"$found\", want \"dynoxide $version\"" >&2
	exit 1
fi
echo "installed .tools/bin/dynoxide $version"
