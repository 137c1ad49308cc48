# workerd's configuration: one worker on one socket, nothing else.
using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [ (name = "hello", worker = .hello) ],
  sockets = [ (name = "http", address = "127.0.0.1:0", http = (), service = "hello") ],
);

const hello :Workerd.Worker = (
  modules = [ (name = "hello.js", esModule = embed "hello/hello.js") ],
  compatibilityDate = "2026-11-01",
);
