# workerd's configurations: one for each workload, with one worker on one socket and nothing else.
using Workerd = import "/workerd/workerd.capnp";

const hello :Workerd.Config = (
  services = [ (name = "worker", worker = .helloWorker) ],
  sockets = [ .socket ],
);

const json :Workerd.Config = (
  services = [ (name = "worker", worker = .jsonWorker) ],
  sockets = [ .socket ],
);

const timer :Workerd.Config = (
  services = [ (name = "worker", worker = .timerWorker) ],
  sockets = [ .socket ],
);

const socket :Workerd.Socket = (name = "http", address = "127.0.0.1:0", http = (), service = "worker");

const helloWorker :Workerd.Worker = (
  modules = [ (name = "hello.js", esModule = embed "functions/hello.js") ],
  compatibilityDate = "2026-11-01",
);

const jsonWorker :Workerd.Worker = (
  modules = [ (name = "json.js", esModule = embed "functions/json.js") ],
  compatibilityDate = "2026-11-01",
);

const timerWorker :Workerd.Worker = (
  modules = [ (name = "timer.js", esModule = embed "functions/timer.js") ],
  compatibilityDate = "2026-11-01",
);
