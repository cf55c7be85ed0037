"""Serves a model as llama.cpp's own server does. Prints its address, and ends with its input."""
import sys
import xllamacpp

params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.port = 0
params.n_ctx = 16384
params.n_parallel = 4
params.use_jinja = True
params.warmup = False
params.verbosity = -1
params.fit_params = False
params.cache_prompt = False  # so that its metrics count each prompt whole
params.endpoint_metrics = True
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
