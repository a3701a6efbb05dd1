#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema.py SCHEMA <JSON: whether standard input is JSON as the schema says.

Knows the keywords that docs/schema uses, and refuses others, so that no test passes for want of a package. Where python3-jsonschema
is installed it judges too.
"""
import json
import sys

NOTES = {"$schema", "title", "description", "definitions"}
TYPES = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool, "integer": int,
         "number": (int, float)}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name not in ("integer", "number") or not isinstance(value, bool))


def check(value, schema, root, path):
    for keyword, want in schema.items():
        if keyword in NOTES:
            continue
        if keyword == "$ref":
            node = root
            for part in want.removeprefix("#/").split("/"):
                node = node[part]
            check(value, node, root, path)
        elif keyword == "type":
            names = want if isinstance(want, list) else [want]
            if not any(is_type(value, n) for n in names):
                sys.exit(f"{path}: {value!r} is not {' or '.join(names)}")
        elif keyword == "enum":
            if value not in want:
                sys.exit(f"{path}: {value!r} is none of {want}")
        elif keyword == "minimum":
            if isinstance(value, (int, float)) and value < want:
                sys.exit(f"{path}: {value} is less than {want}")
        elif keyword == "required":
            missing = [k for k in want if k not in value] if isinstance(value, dict) else []
            if missing:
                sys.exit(f"{path}: lacks {missing}")
        elif keyword == "additionalProperties":
            assert want is False
            extra = set(value) - set(schema["properties"]) if isinstance(value, dict) else None
            if extra:
                sys.exit(f"{path}: has {extra}")
        elif keyword == "properties":
            for k, s in want.items():
                if isinstance(value, dict) and k in value:
                    check(value[k], s, root, f"{path}.{k}")
        elif keyword == "items":
            for i, v in enumerate(value if isinstance(value, list) else []):
                check(v, want, root, f"{path}[{i}]")
        else:
            sys.exit(f"keyword {keyword} is not known here")


def no_twin(pairs):
    keys = [k for k, _ in pairs]
    if len(keys) != len(set(keys)):
        sys.exit(f"a key twice: {keys}")
    return dict(pairs)


with open(sys.argv[1], encoding="utf-8") as f:
    schema = json.load(f)
value = json.load(sys.stdin, object_pairs_hook=no_twin)
check(value, schema, schema, "$")
try:
    import jsonschema
except ImportError:
    pass
else:
    jsonschema.validate(value, schema)
