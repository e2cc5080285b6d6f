"""Signatures, by the examples that AWS publishes."""

from __future__ import annotations

from optcache._sigv4 import (
    Credentials,
    Scope,
    authorization,
    canonical_request,
    signed_headers,
    string_to_sign,
)

S3_KEYS = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
SUITE_KEYS = Credentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SUITE_HEADERS = {"x-amz-date": "20150830T123600Z", "host": "example.amazonaws.com"}
SUITE_SCOPE = Scope("20150830T123600Z", "us-east-1", "service")
EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_get_object() -> None:
    """Of "Authenticating Requests: Using the Authorization Header"."""
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": EMPTY,
        "x-amz-date": "20130524T000000Z",
    }
    scope = Scope("20130524T000000Z", "us-east-1")
    assert authorization("GET", "/test.txt", headers, scope, S3_KEYS) == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_get_vanilla() -> None:
    """Of AWS's test suite for Signature Version 4."""
    canonical = canonical_request("GET", "/", SUITE_HEADERS)
    assert canonical == (
        "GET\n/\n\nhost:example.amazonaws.com\nx-amz-date:20150830T123600Z\n\nhost;x-amz-date\n"
        + EMPTY
    )
    assert string_to_sign(canonical, SUITE_SCOPE) == (
        "AWS4-HMAC-SHA256\n20150830T123600Z\n20150830/us-east-1/service/aws4_request\n"
        "bb579772317eb040ac9ed261061d46c1f17a8133879d6129b6e1c25292927e63"
    )
    assert authorization("GET", "/", SUITE_HEADERS, SUITE_SCOPE, SUITE_KEYS).endswith(
        ",Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
    )


def test_get_header_value_trim() -> None:
    """Of the same suite."""
    headers = SUITE_HEADERS | {"my-header1": " value1", "my-header2": ' "a   b   c"'}
    assert authorization("GET", "/", headers, SUITE_SCOPE, SUITE_KEYS).endswith(
        "SignedHeaders=host;my-header1;my-header2;x-amz-date,"
        "Signature=acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"
    )


def test_all_that_is_sent_is_signed_and_so_is_the_session_token() -> None:
    keys = Credentials(S3_KEYS.access_key_id, S3_KEYS.secret_access_key, "a/token=")
    more = {"x-amz-request-payer": "requester"}
    headers = signed_headers("host:9000", "/b/k", more, "eu-west-1", keys, 1369353600)
    proof = headers.pop("authorization")
    assert headers == {
        **more,
        "host": "host:9000",
        "x-amz-date": "20130524T000000Z",
        "x-amz-content-sha256": EMPTY,
        "x-amz-security-token": "a/token=",
    }
    assert (
        "/20130524/eu-west-1/s3/aws4_request,SignedHeaders=host;x-amz-content-sha256;x-amz-date;"
        "x-amz-request-payer;x-amz-security-token,Signature=" in proof
    )


def test_no_text_shows_keys() -> None:
    assert repr(Credentials("AKIA", "secret", "token")) == "Credentials()"
