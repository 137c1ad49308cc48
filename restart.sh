SP=$(head -1 /tmp/atk/serve.err | grep -o '"pid":[0-9]*' | cut -d: -f2)
HP=$(cat /proc/$SP/task/$SP/children 2>/dev/null)
kill -9 $SP; sleep 1.5; for h in $HP; do [ -d /proc/$h ] && echo "host $h still alive after server kill: $(ps -o pid,ppid,pcpu,stat -p $h | tail -1)"; done
cd /work/main; CARPOOL_STATE_DIR=/tmp/atk/state nohup node packages/cli/bin/carpool.js serve --port 0 --admin-port 0 --data /tmp/atk/data --json $EXTRA >/tmp/atk/serve.out 2>/tmp/atk/serve.err &
sleep 3; cat /tmp/atk/serve.out; cat /tmp/atk/serve.err | cut -c1-300
