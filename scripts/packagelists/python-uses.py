# ruff: noqa
# boto3
made = m.client("s3", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b")
url = made.generate_presigned_url("get_object", Params={"Bucket": "shelf", "Key": "k"})
assert "shelf" in url and "Signature" in url
# packaging
from packaging.specifiers import SpecifierSet
from packaging.version import Version

assert Version("1.10") in SpecifierSet(">=1.9") and Version("2.0rc1").is_prerelease
# urllib3
assert m.util.parse_url("https://a.test:8/x?y=1").port == 8
assert m.Retry(3).increment(error=OSError()).total == 2
# certifi
assert m.where().endswith("cacert.pem")
assert "BEGIN CERTIFICATE" in m.contents()
# idna
assert m.encode("ドメイン.テスト") == b"xn--eckwd4c7c.xn--zckzah"
assert m.decode("xn--bcher-kva.test") == "bücher.test"
# requests
made = m.Request("POST", "https://a.test/", params={"q": "x y"}, json={"a": 1}).prepare()
assert made.url == "https://a.test/?q=x+y" and made.headers["Content-Type"] == "application/json"


# typing-extensions
class Shape(m.TypedDict):
    side: m.Required[int]


assert Shape.__required_keys__ == {"side"}
# charset-normalizer
best = m.from_bytes("Bücher für Köche und ähnliche Gäste".encode("latin-1") * 5).best()
assert best is not None and "cher" in str(best)
# setuptools
from setuptools import Distribution, find_packages

assert Distribution({"name": "a", "version": "1"}).get_name() == "a" and find_packages("/tmp") == []
# botocore
import botocore.session

made = botocore.session.get_session().create_client("sts", region_name="eu-west-1")
assert "GetCallerIdentity" in made.meta.service_model.operation_names
# python-dateutil
import datetime

from dateutil import parser, relativedelta

later = parser.parse("Jan 31 2024") + relativedelta.relativedelta(months=1)
assert later == datetime.datetime(2024, 2, 29)
# six
assert m.ensure_binary("é") == b"\xc3\xa9" and m.PY3
assert m.moves.urllib.parse.quote(" ") == "%20"
# pyyaml
assert m.safe_load("a: [1, {b: true}]") == {"a": [1, {"b": True}]}
assert m.safe_dump({"x": None}) == "x: null\n"
# pygments
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

assert '<span class="k">def</span>' in m.highlight("def f(): 1", PythonLexer(), HtmlFormatter())
# click
from click.testing import CliRunner

greet = m.command()(m.option("--name")(lambda name: m.echo(f"hi {name}")))
assert CliRunner().invoke(greet, ["--name", "Ada"]).output == "hi Ada\n"
# pluggy
spec, impl, manager = m.HookspecMarker("p"), m.HookimplMarker("p"), m.PluginManager("p")
manager.register(type("A", (), {"f": impl(lambda self, x: x + 1)})())
assert manager.hook.f(x=1) == [2]
# pycparser
from pycparser import c_generator, c_parser

tree = c_parser.CParser().parse("int f(int a) { return a * 2; }")
assert "return a * 2;" in c_generator.CGenerator().visit(tree)


# anyio
async def work():
    async with m.create_task_group() as group:
        group.start_soon(m.sleep, 0)


import asyncio

asyncio.get_event_loop().run_until_complete(work())
# s3transfer
from s3transfer.utils import calculate_range_parameter

assert calculate_range_parameter(8, 1, 3) == "bytes=8-15"
# attrs
import attrs

point = attrs.define(
    type("Point", (), {"__annotations__": {"x": int}, "x": attrs.field(converter=int)})
)
assert point("3").x == 3 and attrs.asdict(point(1)) == {"x": 1}
# protobuf
from google.protobuf import json_format, struct_pb2

made = json_format.ParseDict({"a": 1}, struct_pb2.Struct())
assert struct_pb2.Struct.FromString(made.SerializeToString())["a"] == 1
# h11
made = m.Connection(our_role=m.CLIENT)
sent = made.send(m.Request(method="GET", target="/", headers=[("Host", "a.test")]))
assert sent.startswith(b"GET / HTTP/1.1\r\n")
# pytest
import pathlib

pathlib.Path("/tmp/test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 2\n")
assert m.main(["-q", "-p", "no:cacheprovider", "/tmp/test_sum.py"]) == 0
# annotated-types
import typing

kind = typing.Annotated[int, m.Gt(3)]
assert typing.get_args(kind)[1].gt == 3
# iniconfig
pathlib = __import__("pathlib")
pathlib.Path("/tmp/a.ini").write_text("[s]\nk = 1\n")
assert m.IniConfig("/tmp/a.ini")["s"]["k"] == "1"
# fsspec
with m.open("memory://a.txt", "w") as file:
    file.write("hello")
assert m.filesystem("memory").cat("/a.txt") == b"hello"
# httpx
handler = m.MockTransport(lambda request: m.Response(200, json={"path": request.url.path}))
with m.Client(transport=handler) as client:
    assert client.get("https://a.test/x").json() == {"path": "/x"}
# httpcore
made = m.Request("GET", "https://a.test/x")
assert made.url.origin.host == b"a.test" and made.url.target == b"/x"
# typing-inspection
import typing

from typing_inspection import typing_objects

assert typing_objects.is_literal(typing.Literal) and typing_objects.is_any(typing.Any)
# pip
from pip._internal.cli.parser import ConfigOptionParser
from pip._vendor.packaging.version import Version

assert Version(m.__version__) > Version("20") and ConfigOptionParser
# markupsafe
assert m.escape("<a>") == "&lt;a&gt;"
assert m.Markup("<b>%s</b>") % "<" == "<b>&lt;</b>"
# platformdirs
assert "app" in m.user_cache_dir("app")
assert m.user_config_path("app", "me").name == "app"
# python-dotenv
import io

import dotenv

assert dotenv.dotenv_values(stream=io.StringIO("A=1\nB=${A}2")) == {"A": "1", "B": "12"}
# pathspec
made = m.PathSpec.from_lines("gitwildmatch", ["*.log", "!keep.log"])
assert list(made.match_files(["a.log", "keep.log", "b"])) == ["a.log"]
# pyjwt
import jwt

key = "k" * 32
assert jwt.decode(jwt.encode({"a": 1}, key, "HS256"), key, algorithms=["HS256"]) == {"a": 1}
# jinja2
made = m.Template("{% for x in xs %}{{ x|upper }}{% endfor %}")
assert made.render(xs="ab") == "AB"
# rich
from rich.console import Console
from rich.table import Table

table, out = Table("n"), Console(record=True, file=__import__("io").StringIO())
table.add_row("42")
out.print(table)
assert "42" in out.export_text()
# jmespath
assert m.search("a[?b > `1`].b", {"a": [{"b": 1}, {"b": 2}]}) == [2]
assert m.compile("x.y").search({"x": {"y": 3}}) == 3
# markdown-it-py
import markdown_it

made = markdown_it.MarkdownIt("commonmark").render("# a *b*")
assert made == "<h1>a <em>b</em></h1>\n"
# filelock
with m.FileLock("/tmp/a.lock") as lock:
    assert lock.is_locked
assert not lock.is_locked
# importlib-metadata
import importlib_metadata

assert importlib_metadata.version("zipp")
assert importlib_metadata.metadata("importlib-metadata")["Name"]
# starlette
from starlette.datastructures import URL, QueryParams
from starlette.routing import compile_path

assert URL("https://a.test/x").replace(path="/y").path == "/y" and QueryParams("a=1")["a"] == "1"
assert compile_path("/u/{n:int}")[0].match("/u/3")
# multidict
made = m.CIMultiDict([("A", "1"), ("a", "2")])
assert made.getall("a") == ["1", "2"] and made["A"] == "1"
# zipp
import io
import zipfile

file = zipfile.ZipFile(io.BytesIO(), "w")
file.writestr("a/b.txt", "hello")
assert m.Path(file).joinpath("a", "b.txt").read_text() == "hello"
# uvicorn
made = m.Config(app=lambda scope: None, port=8001)
assert made.port == 8001 and m.Server(made).started is False
# propcache
from propcache.api import cached_property

square = type("Square", (), {"area": cached_property(lambda self: 9)})
assert square().area == 9
# wheel
from wheel.wheelfile import WHEEL_INFO_RE

assert WHEEL_INFO_RE.match("six-1.0-py3-none-any.whl").group("name") == "six"
# mdurl
assert m.encode("https://a.test/ü") == "https://a.test/%C3%BC"
assert m.parse("https://a.test/x?y").pathname == "/x"
# pyasn1
from pyasn1.codec.der import decoder, encoder
from pyasn1.type import univ

assert decoder.decode(encoder.encode(univ.Integer(42)))[0] == 42
# pytz
import datetime

made = m.timezone("Europe/Berlin").localize(datetime.datetime(2024, 7, 1, 12))
assert made.astimezone(m.utc).hour == 10
# googleapis-common-protos
from google.type import money_pb2

made = money_pb2.Money(currency_code="EUR", units=3)
assert money_pb2.Money.FromString(made.SerializeToString()).units == 3
# frozenlist
made = m.FrozenList([1, 2])
made.freeze()
assert made.frozen and hash(made)
# tqdm
import io

out = io.StringIO()
assert list(m.tqdm(range(3), file=out)) == [0, 1, 2] and "3/3" in out.getvalue()
# annotated-doc
import typing

kind = typing.Annotated[int, m.Doc("how many")]
assert typing.get_args(kind)[1].documentation == "how many"
# aiosignal
import asyncio

signal, got = m.Signal(None), []


async def take(x):
    got.append(x)


signal.append(take)
signal.freeze()
asyncio.get_event_loop().run_until_complete(signal.send(3))
# trove-classifiers
assert "Programming Language :: Python :: 3" in m.classifiers
assert len(m.sorted_classifiers) == len(m.classifiers)
# tzdata
import datetime
import zoneinfo

made = datetime.datetime(2024, 1, 1, tzinfo=zoneinfo.ZoneInfo("Asia/Tokyo"))
assert made.utcoffset().seconds == 9 * 3600
# colorama
assert m.Fore.RED == "\x1b[31m" and m.Style.RESET_ALL == "\x1b[0m"
m.init()
m.deinit()
# pyasn1-modules
from pyasn1_modules import rfc2459

made = rfc2459.AlgorithmIdentifier()
made["algorithm"] = "1.2.840.113549.1.1.1"
assert str(made["algorithm"]) == "1.2.840.113549.1.1.1"
# typer
from typer.testing import CliRunner

app = m.Typer()
app.command()(lambda name: m.echo(f"hi {name}"))
assert CliRunner().invoke(app, ["Ada"]).exit_code == 0
# tenacity
tries = []
made = m.retry(stop=m.stop_after_attempt(3), reraise=True)(
    lambda: tries.append(1) or 1 / (len(tries) - 2)
)
assert len(tries) == 0 and made() == -1
# wrapt
twice = m.decorator(lambda wrapped, instance, args, kwargs: 2 * wrapped(*args, **kwargs))
assert twice(lambda x: x + 1)(2) == 6
# requests-oauthlib
made = m.OAuth2Session("id", redirect_uri="https://b.test/")
url, state = made.authorization_url("https://a.test/auth")
assert "client_id=id" in url and state in url
# opentelemetry-api
from opentelemetry import trace

with trace.get_tracer("a").start_as_current_span("b") as span:
    assert not span.is_recording()
# websockets
from websockets.frames import Frame, Opcode

made = Frame(Opcode.TEXT, b"hi").serialize(mask=False)
assert made == b"\x81\x02hi"
# python-multipart
import python_multipart

name, options = python_multipart.multipart.parse_options_header("form-data; name=a")
assert name == b"form-data" and options[b"name"] == b"a"
# sqlalchemy
made = m.create_engine("sqlite://")
with made.connect() as connection:
    assert connection.execute(m.text("select 1 + 1")).scalar() == 2
# pyparsing
word = m.Word(m.alphas) + m.Suppress(",") + m.Word(m.nums)
assert word.parse_string("ab, 12").as_list() == ["ab", "12"]
# shellingham
try:
    m.detect_shell()
except m.ShellDetectionFailure:
    pass
# tomli
assert m.loads("[a]\nb = 1") == {"a": {"b": 1}}
# sniffio
import asyncio


async def ask():
    return m.current_async_library()


assert asyncio.get_event_loop().run_until_complete(ask()) == "asyncio"
# aiobotocore
from aiobotocore.session import get_session

assert "s3" in get_session().get_available_services()
# aiohappyeyeballs
assert m.addr_to_addr_infos(("127.0.0.1", 80))[0][4] == ("127.0.0.1", 80)
# aiohttp
from aiohttp import web

app = web.Application()
app.router.add_get("/shelf/{n}", lambda request: web.Response())
assert [route.method for route in app.router.routes()] == ["HEAD", "GET"]
# awscli
from awscli.customizations.s3.utils import split_s3_bucket_key

assert split_s3_bucket_key("s3://shelf/k/x") == ("shelf", "k/x")
# fastapi
app = m.FastAPI()
app.get("/shelf/{n}")(lambda n: n)
assert "/shelf/{n}" in app.openapi()["paths"]
# opentelemetry-sdk
from opentelemetry.sdk.trace import TracerProvider

with TracerProvider().get_tracer("a").start_as_current_span("b") as span:
    assert span.get_span_context().is_valid
# opentelemetry-semantic-conventions
from opentelemetry.semconv.attributes import http_attributes

assert http_attributes.HTTP_REQUEST_METHOD == "http.request.method"


# pydantic
class Book(m.BaseModel):
    pages: int


assert Book(pages="3").pages == 3 and "pages" in Book.model_json_schema()["properties"]
# pydantic-core
from pydantic_core import SchemaValidator, core_schema

assert SchemaValidator(core_schema.int_schema()).validate_python("3") == 3
# pydantic-settings
import os

os.environ["SHELF_PAGES"] = "3"


class Settings(m.BaseSettings):
    model_config = {"env_prefix": "SHELF_"}
    pages: int


assert Settings().pages == 3
# s3fs
assert m.S3FileSystem(anon=True, asynchronous=True).split_path("s3://shelf/k")[:2] == ("shelf", "k")
# virtualenv
from virtualenv.seed.wheels.embed import get_embed_wheel

assert get_embed_wheel("pip", "3.13").distribution == "pip"
# yarl
assert str((m.URL("https://a.test/x") / "z").with_query(q=1)) == "https://a.test/x/z?q=1"
