"""Writes to standard output what Powertools for Python hashes each line of values.txt to.

That is the body of _generate_hash in aws_lambda_powertools/utilities/idempotency/persistence/base.py, release 3.
Usage: python3 derive.py <values.txt >python.txt
"""

import hashlib
import json
import sys

for line in sys.stdin.buffer:
    data = json.loads(line)
    print(hashlib.md5(json.dumps(data, sort_keys=True).encode()).hexdigest())
