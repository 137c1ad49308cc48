#pragma once
#include <node_api.h>
#include <uv.h>

void AddSignals(napi_env env, napi_value host);
