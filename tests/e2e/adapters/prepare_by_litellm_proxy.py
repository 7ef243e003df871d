"""Passes a request, read as JSON from stdin, through the hooks of LiteLLM's proxy, and writes it as JSON to stdout."""

import asyncio
import json
import sys

import litellm
from litellm.caching.caching import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.utils import ProxyLogging

from sightline.surfaces.adapters.litellm import callback

litellm.callbacks = [callback]
hooks = ProxyLogging(user_api_key_cache=DualCache())
prepared = asyncio.run(
    hooks.pre_call_hook(user_api_key_dict=UserAPIKeyAuth(), data=json.load(sys.stdin), call_type="acompletion")
)
json.dump({"messages": prepared["messages"]}, sys.stdout)
