"""Renders what `millrace load templates --write` wrote, with each library, for a number of seconds."""

import html
import importlib.metadata
import json
import sys
import time

import chevron
import jinja2
import pystache


def rate(render, seconds):
    for _ in range(10):
        render()
    began = time.perf_counter()
    renders = 0
    while (taken := time.perf_counter() - began) < seconds:
        for _ in range(10):
            render()
        renders += 10
    return renders / taken


def main():
    directory, seconds = sys.argv[1], float(sys.argv[2])
    with open(f"{directory}/template.mustache", encoding="utf-8") as file:
        source = file.read()
    with open(f"{directory}/data.json", encoding="utf-8") as file:
        data = json.load(file)
    with open(f"{directory}/expected.html", encoding="utf-8") as file:
        expected = html.unescape(file.read())

    renderer = pystache.Renderer()
    parsed = pystache.parse(source)
    jinja = jinja2.Environment(autoescape=True, keep_trailing_newline=True).from_string(source)
    renders = {
        "pystache": lambda: renderer.render(parsed, data),
        # It has no compiled form: its own cache of tokens is by the text of the template.
        "chevron": lambda: chevron.render(source, data),
        "jinja2": lambda: jinja.render(data),
    }
    for name, render in renders.items():
        # They write quotes and the like in different ways; what a reader sees must be the same.
        if html.unescape(render()) != expected:
            sys.exit(f"{name} renders something else")
        version = importlib.metadata.version(name)
        print(f"{name} {version}: {rate(render, seconds):,.0f} renders/s", flush=True)


main()
