#!/bin/sh
# Runs as root inside a bare Debian: from nothing to a box that takes a message. What happened is left in /result, a file for each step.
# "systemd": the units start it; "plain": nothing but a user without rights and the one to bind low ports.
set -eu
how=$1
result=/result
mkdir -p $result
exec >$result/log 2>&1
set -x
node=/opt/pillarbox/node_modules/.bin/node
visit="$node /opt/pillarbox/test/peers/bare-debian/visit.ts"

finish() {
  echo $? >$result/status
  [ "$how" = plain ] || journalctl --no-pager -u 'pillarbox*' -o cat >$result/journal || true
  [ "$how" = plain ] || systemctl --no-block poweroff
}
trap finish EXIT

begin() {
  if [ "$how" = plain ]; then
    setpriv --reuid=pillarbox --regid=pillarbox --clear-groups --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service \
      --no-new-privs pillarbox serve >>$result/journal 2>&1 &
    pid=$!
    pillarbox ready --wait 60
  else
    systemctl start pillarbox.service
    pid=$(systemctl show --property=MainPID --value pillarbox.service)
  fi
}
end() {
  if [ "$how" = plain ]; then
    kill "$pid"
    wait "$pid"
  else
    systemctl stop pillarbox.service
  fi
}

/opt/pillarbox/bin/pillarbox init --yes --json --offline --domain agents.test --hostname mx.agents.test >$result/init.json
[ "$how" = plain ] || systemctl daemon-reload
begin
cp "/proc/$pid/status" $result/process
$visit deliver >$result/delivered
$visit read >$result/read
pillarbox domain list >$result/domains
if [ "$how" = systemd ]; then
  systemd-analyze security --no-pager pillarbox.service >$result/exposure || true
  systemctl reload pillarbox.service
  systemctl start pillarbox-backup.service
  find /var/backups/pillarbox -name '*' -type f >$result/backups
fi
end
# beside a box that does not run, root's commands leave nothing that it could not write
pillarbox domain list >$result/domains-stopped
begin
$visit read >$result/read-again
find /var/lib/pillarbox /var/lib/pillarbox-keys ! -user pillarbox >$result/strangers
# a second set-up keeps its hands off the first
pillarbox init --yes --offline --domain other.test 2>$result/refused || true
end
