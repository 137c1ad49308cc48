// Tells the host's event loop of isolates, as many as there are in one turn.
#include "signals.h"

#include "isolate-state.h"

namespace {

uv_async_t* waker = nullptr;
// Guards the waker against its end, at which threads of isolates may still run.
std::atomic_flag waker_lock = ATOMIC_FLAG_INIT;
napi_env env_of_host = nullptr;
napi_ref listener = nullptr;
// The latest first.
std::atomic<IsolateState*> signaled{nullptr};

inline napi_value AsNapi(v8::Local<v8::Value> value) {
	static_assert(sizeof(napi_value) == sizeof(value));
	return reinterpret_cast<napi_value>(*value);
}

void Report() {
	napi_value callback, receiver;
	if (napi_get_reference_value(env_of_host, listener, &callback) != napi_ok) return;
	if (napi_get_global(env_of_host, &receiver) != napi_ok) return;
	IsolateState* last = signaled.exchange(nullptr, std::memory_order_acquire);
	IsolateState* first = nullptr;
	uint32_t count = 0;
	while (last != nullptr) {
		IsolateState* before = last->next_signaled;
		last->next_signaled = first;
		first = last;
		last = before;
		count++;
	}
	v8::Isolate* isolate = v8::Isolate::GetCurrent();
	v8::Local<v8::Context> context = isolate->GetCurrentContext();
	v8::Local<v8::Array> list = v8::Array::New(isolate, static_cast<int>(2 * count));
	for (uint32_t index = 0; first != nullptr; index += 2) {
		IsolateState* state = first;
		// From when the events are taken it may be in the list again.
		first = state->next_signaled;
		uint32_t events = state->events.exchange(0);
		list->Set(context, index, v8::Integer::NewFromUnsigned(isolate, state->index)).Check();
		list->Set(context, index + 1, v8::Integer::NewFromUnsigned(isolate, events)).Check();
	}
	napi_value argument = AsNapi(list);
	napi_value thrown;
	if (napi_make_callback(env_of_host, nullptr, receiver, callback, 1, &argument, nullptr) == napi_ok) return;
	if (napi_get_and_clear_last_exception(env_of_host, &thrown) == napi_ok) napi_fatal_exception(env_of_host, thrown);
}

void Wake(uv_async_t*) {
	napi_handle_scope scope;
	if (napi_open_handle_scope(env_of_host, &scope) != napi_ok) return;
	Report();
	napi_close_handle_scope(env_of_host, scope);
}

void Stop(void*) {
	uv_async_t* stopped = waker;
	{
		Locked locked(waker_lock);
		waker = nullptr;
	}
	if (stopped != nullptr) uv_close(reinterpret_cast<uv_handle_t*>(stopped), [](uv_handle_t* handle) { free(handle); });
}

// listen(callback): has it called with indexes of isolates, each followed by its events. It keeps nothing alive.
napi_value Listen(napi_env env, napi_callback_info info) {
	size_t count = 1;
	napi_value callback;
	uv_loop_t* loop;
	if (waker != nullptr || napi_get_cb_info(env, info, &count, &callback, nullptr, nullptr) != napi_ok) return nullptr;
	if (napi_create_reference(env, callback, 1, &listener) != napi_ok) return nullptr;
	if (napi_get_uv_event_loop(env, &loop) != napi_ok) return nullptr;
	uv_async_t* made = static_cast<uv_async_t*>(calloc(1, sizeof(uv_async_t)));
	if (made == nullptr || uv_async_init(loop, made, Wake) != 0) {
		free(made);
		return nullptr;
	}
	uv_unref(reinterpret_cast<uv_handle_t*>(made));
	env_of_host = env;
	waker = made;
	napi_add_env_cleanup_hook(env, Stop, nullptr);
	return nullptr;
}

}  // namespace

void Signal(IsolateState* state, uint32_t event) {
	if (state->events.fetch_or(event) != 0) return;
	state->next_signaled = signaled.load(std::memory_order_relaxed);
	while (!signaled.compare_exchange_weak(state->next_signaled, state, std::memory_order_release, std::memory_order_relaxed)) {}
	Locked locked(waker_lock);
	if (waker != nullptr) uv_async_send(waker);
}

void AddSignals(napi_env env, napi_value host) {
	napi_property_descriptor listen = {"listen", nullptr, Listen, nullptr, nullptr, nullptr, napi_enumerable, nullptr};
	napi_define_properties(env, host, 1, &listen);
}
