import CountersignTransport

/// A signed request with all intermediate values, for a team that signs without this SDK, on another
/// platform or in another language.
///
/// An implementation of RFC 9421 that shares no code with this package made the vectors. A correct
/// implementation derives ``stringToSign`` from the other properties; its HMAC-SHA-256 under ``secret`` is
/// the signature in ``fields``. Source: RFC 9421 §2.5, §3.3.3; docs/protocol.md.
public struct SignatureVector: Sendable {
    /// The point that this vector tests.
    public let name: String
    /// The method, in the case in which it is signed.
    public let method: String
    /// The URL scheme: `https` or `http`.
    public let scheme: String
    /// The `Host` field as sent; the signature covers it in lower case and without a default port.
    public let authority: String
    /// The path and query as sent.
    public let target: String
    /// All fields, including those of the signature.
    public let fields: [HeaderField]
    /// The body, which `Content-Digest` covers.
    public let body: [UInt8]
    /// The release key's id.
    public let keyID: String
    /// The key of the HMAC.
    public let secret: [UInt8]
    /// The signing time in whole Unix seconds.
    public let created: Int64
    /// The signature base.
    public let stringToSign: String
}

// The data that Vectors/testkit.py derives from Vectors/message-signatures/cases.json.
import CountersignTransport

extension SignatureVector {
    /// All vectors; each one's name states the point that it tests.
    public static let all: [SignatureVector] = [
        SignatureVector(
            name: "get without a query", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="d72d8e2816794186150c6867f7c74cd9";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:mvKWQkO84kjnxNTaJxiOgZZuZ8jRI4nl1h3XvrA9rmk=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                42, 170, 171, 109, 245, 83, 233, 97, 228, 149, 180, 192, 137, 20, 117, 116, 52, 220, 1, 26,
                44, 149, 240, 181, 223, 118, 77, 72, 76, 28, 66, 106,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="d72d8e2816794186150c6867f7c74cd9";tag="countersign"
                """
        ),
        SignatureVector(
            name: "get with an empty query", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes?",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="9484658554f79720b99d515fba275efc";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:jvLDisENpTewx5+YIGu5UnwP9pNls5h9VRK8OSlSBMU=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                194, 137, 42, 84, 7, 125, 127, 51, 156, 221, 190, 245, 11, 222, 220, 115, 5, 60, 213, 237, 45,
                254, 44, 219, 243, 10, 99, 137, 45, 33, 128, 58,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="9484658554f79720b99d515fba275efc";tag="countersign"
                """
        ),
        SignatureVector(
            name: "root", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="4813494d137e1631bba301d5acab6e7b";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:dpz8srulU9RmLAMfOnx9NTN32deCjcZh3x5qB1SSz/U=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                71, 124, 29, 18, 157, 90, 208, 37, 2, 69, 64, 199, 120, 86, 106, 33, 101, 5, 235, 186, 107,
                27, 161, 216, 110, 249, 75, 30, 117, 45, 226, 125,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="4813494d137e1631bba301d5acab6e7b";tag="countersign"
                """
        ),
        SignatureVector(
            name: "query kept raw", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/find?q=a+b&q=a%20b&z=%C3%BC&empty=&flag",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="de173141f7a1e3bb26d8fc3d1ec75aae";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:YORj+SLTsrsDLYDtgp0uOeImIHhg6Tu0XKWjm6VIpSs=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                57, 254, 124, 253, 13, 166, 46, 140, 126, 74, 232, 121, 103, 218, 238, 3, 21, 52, 251, 153,
                67, 225, 173, 63, 137, 5, 164, 100, 190, 102, 121, 94,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /find
                "@query": ?q=a+b&q=a%20b&z=%C3%BC&empty=&flag
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="de173141f7a1e3bb26d8fc3d1ec75aae";tag="countersign"
                """
        ),
        SignatureVector(
            name: "path kept raw", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/a%2Fb/%7Euser/;v=1/x%20y",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="e55679d548acccd09fe7b5f4a04e8cc7";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:Feghp47egDmU2UTAQd/bmDl7Cu2zgIqc0y6lRUZSGdQ=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                194, 60, 75, 67, 109, 170, 217, 88, 175, 17, 178, 154, 44, 217, 70, 110, 97, 223, 242, 83,
                231, 250, 139, 109, 41, 1, 135, 57, 27, 145, 154, 28,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /a%2Fb/%7Euser/;v=1/x%20y
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="e55679d548acccd09fe7b5f4a04e8cc7";tag="countersign"
                """
        ),
        SignatureVector(
            name: "double slashes", method: "GET", scheme: "https",
            authority: "api.example.com", target: "//a//b/",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="97477a458a9066a126e2a2332392b03a";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:Ae7w1QoEaj4g24byzhN1eIeKS1twn0yZI2d/KXOKpj0=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                121, 99, 141, 93, 141, 114, 131, 190, 21, 182, 178, 103, 175, 171, 190, 224, 51, 11, 134, 117,
                243, 220, 43, 243, 49, 193, 68, 105, 144, 161, 31, 155,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": //a//b/
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="97477a458a9066a126e2a2332392b03a";tag="countersign"
                """
        ),
        SignatureVector(
            name: "authority in upper case", method: "GET", scheme: "https",
            authority: "API.Example.COM", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="89944f692cbb30eb41eab3f56a410446";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:nZa0fuy8NIYhI+3bYOGo7lIwQeTk7/dG9Ac7OhPJsRs=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                170, 52, 30, 162, 213, 173, 176, 81, 151, 155, 210, 84, 103, 243, 177, 205, 6, 181, 23, 2,
                103, 99, 32, 200, 149, 215, 153, 122, 62, 83, 135, 153,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="89944f692cbb30eb41eab3f56a410446";tag="countersign"
                """
        ),
        SignatureVector(
            name: "default port of https", method: "GET", scheme: "https",
            authority: "api.example.com:443", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="97b683e8ee7878f0f15805bb660075d0";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:qbQ1z0pj9XVwfpI1zvHTGwDSq8Eb8TQZs0nxsK2ge7I=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                74, 127, 29, 236, 243, 180, 197, 223, 248, 254, 140, 101, 22, 159, 224, 55, 174, 209, 143,
                220, 244, 215, 98, 253, 129, 132, 77, 139, 52, 162, 197, 39,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="97b683e8ee7878f0f15805bb660075d0";tag="countersign"
                """
        ),
        SignatureVector(
            name: "default port of http", method: "GET", scheme: "http",
            authority: "api.example.com:80", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="52afa7d6189238e23d4aa609c858e7a6";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:oD44eYNj5Tcy/JeMouQBqeNkf/O7GQAFSdTb9V+u3v0=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                187, 13, 254, 27, 172, 200, 172, 13, 246, 106, 160, 132, 154, 206, 23, 255, 64, 176, 21, 231,
                113, 50, 154, 198, 174, 100, 131, 232, 148, 187, 223, 133,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="52afa7d6189238e23d4aa609c858e7a6";tag="countersign"
                """
        ),
        SignatureVector(
            name: "another port", method: "GET", scheme: "https",
            authority: "localhost:8443", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="cbd28c333bb066eaf7a31e41ebfbe2bd";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:myyMTtLB5/JMGS4yBMwRjQx/dIZeQ3JYzr/ciBmMWv0=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                223, 210, 7, 177, 123, 135, 129, 239, 31, 83, 159, 139, 103, 194, 245, 14, 85, 95, 55, 173,
                241, 2, 193, 192, 111, 26, 210, 30, 97, 180, 241, 208,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": localhost:8443
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="cbd28c333bb066eaf7a31e41ebfbe2bd";tag="countersign"
                """
        ),
        SignatureVector(
            name: "IPv6 authority", method: "GET", scheme: "https",
            authority: "[::1]:8443", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="3d2c845fd57ad04db676a2b0839588e0";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:2P9dsPH4tYXnM6p86sURDlvKyZO3S8u/r7j4xy/16Hc=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                81, 45, 13, 227, 133, 135, 175, 67, 251, 29, 242, 213, 213, 34, 196, 54, 84, 74, 87, 212, 168,
                82, 238, 203, 107, 9, 77, 238, 156, 113, 195, 99,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": [::1]:8443
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="3d2c845fd57ad04db676a2b0839588e0";tag="countersign"
                """
        ),
        SignatureVector(
            name: "post with a body", method: "POST", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Content-Digest", value: "sha-256=:y7vc0naSNE3l26s6vKukE/sPRTByZ95wgUAVdt8csXY=:"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" \
                        "content-digest" "content-type");created=1700000000;keyid="r_vector";\
                        alg="hmac-sha256";nonce="6b38bd4b93e0b72026880379dd8ffedb";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:kkyMj+wJwI2pmzHFKHI/x5WFLqSPW31rf7rJVq91WWo=:"),
            ],
            body: Array("{\"text\":\"hello\"}".utf8), keyID: "r_vector",
            secret: [
                162, 150, 141, 104, 159, 193, 154, 151, 93, 30, 107, 53, 201, 116, 179, 23, 88, 108, 204, 61,
                161, 58, 199, 236, 138, 97, 48, 50, 100, 250, 118, 56,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": POST
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "content-digest": sha-256=:y7vc0naSNE3l26s6vKukE/sPRTByZ95wgUAVdt8csXY=:
                "content-type": application/json
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "content-digest" "content-type");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="6b38bd4b93e0b72026880379dd8ffedb";tag="countersign"
                """
        ),
        SignatureVector(
            name: "both digests", method: "PUT", scheme: "https",
            authority: "api.example.com", target: "/notes/1",
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Content-Digest",
                    value:
                        """
                        sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:, \
                        sha-512=:J8dGcK23UHX60FjVzq97IMTneGyDuuijL2Jvl4KvNMmjPCBG72D9Knh403jin+yFGAa72aZ4e\
                        POp8c2kgwdj/Q==:
                        """
                ),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" \
                        "content-digest" "content-type");created=1700000000;keyid="r_vector";\
                        alg="hmac-sha256";nonce="d48cc538c67b0a4ac89ba3e377bc2288";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:ZHM0KRcf2hmYKkJX7rcmrJbcs6p0bR24+Jbmej3KyyI=:"),
            ],
            body: Array("{}".utf8), keyID: "r_vector",
            secret: [
                238, 145, 205, 180, 102, 124, 198, 28, 108, 204, 114, 45, 33, 45, 226, 104, 97, 43, 100, 155,
                106, 46, 31, 163, 123, 13, 48, 64, 74, 91, 201, 242,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": PUT
                "@authority": api.example.com
                "@path": /notes/1
                "@query": ?
                "countersign-release": r_vector
                "content-digest": sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:, \
                sha-512=:J8dGcK23UHX60FjVzq97IMTneGyDuuijL2Jvl4KvNMmjPCBG72D9Knh403jin+yFGAa72aZ4ePOp8c2kg\
                wdj/Q==:
                "content-type": application/json
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "content-digest" "content-type");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="d48cc538c67b0a4ac89ba3e377bc2288";tag="countersign"
                """
        ),
        SignatureVector(
            name: "sha-512 alone", method: "PUT", scheme: "https",
            authority: "api.example.com", target: "/notes/1",
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Content-Digest",
                    value:
                        """
                        sha-512=:slspTLTetp6gCkw88xE5BIAbYBXllWvQGahXCx/h1gQOlE7zze4W0KRlA8puZZol8hz5zt3BP\
                        zUqPJgTjBXWrw==:
                        """
                ),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" \
                        "content-digest" "content-type");created=1700000000;keyid="r_vector";\
                        alg="hmac-sha256";nonce="a42336384650fb75451d6ef292c32f11";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:bvUQAYfYk0jfGQfvQi0hx6L+sJe1Ldlj94QiNy9TSPg=:"),
            ],
            body: Array("[]".utf8), keyID: "r_vector",
            secret: [
                150, 171, 86, 153, 94, 171, 24, 165, 10, 40, 214, 33, 160, 138, 5, 20, 192, 233, 53, 237, 55,
                24, 37, 0, 5, 198, 218, 163, 11, 198, 142, 118,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": PUT
                "@authority": api.example.com
                "@path": /notes/1
                "@query": ?
                "countersign-release": r_vector
                "content-digest": \
                sha-512=:slspTLTetp6gCkw88xE5BIAbYBXllWvQGahXCx/h1gQOlE7zze4W0KRlA8puZZol8hz5zt3BPzUqPJgTj\
                BXWrw==:
                "content-type": application/json
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "content-digest" "content-type");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="a42336384650fb75451d6ef292c32f11";tag="countersign"
                """
        ),
        SignatureVector(
            name: "idempotency key", method: "POST", scheme: "https",
            authority: "api.example.com", target: "/orders",
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("Idempotency-Key", value: "5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Content-Digest", value: "sha-256=:FM8FV7fL62wtDLMMaiDrYMofaw5tCNWP5ThYnFiRE38=:"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" \
                        "content-digest" "content-type" "idempotency-key");created=1700000000;\
                        keyid="r_vector";alg="hmac-sha256";nonce="8a3f6aee00f005cde2975c8573011f0a";\
                        tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:DQ8qnuYwdyv07x+66vGZwMlOyIAERozb9vjNOwM9MrY=:"),
            ],
            body: Array("{\"item\":7}".utf8), keyID: "r_vector",
            secret: [
                255, 111, 134, 4, 39, 253, 141, 195, 12, 202, 248, 88, 115, 127, 15, 44, 94, 77, 210, 250, 51,
                51, 133, 192, 18, 111, 16, 156, 207, 253, 17, 217,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": POST
                "@authority": api.example.com
                "@path": /orders
                "@query": ?
                "countersign-release": r_vector
                "content-digest": sha-256=:FM8FV7fL62wtDLMMaiDrYMofaw5tCNWP5ThYnFiRE38=:
                "content-type": application/json
                "idempotency-key": 5d0f6f0e-9d8b-4f6e-8d6c-1f1b7c6c8a11
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "content-digest" "content-type" "idempotency-key");created=1700000000;keyid="r_vector";\
                alg="hmac-sha256";nonce="8a3f6aee00f005cde2975c8573011f0a";tag="countersign"
                """
        ),
        SignatureVector(
            name: "empty field", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("X-Empty", value: ""),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" "x-empty");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="55a91ad2a09a1c7bb24d76dc0d546a3a";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:lj2pPq1MK9t53sr+IZdkCWCkD/1d0s8tYAMfBIHAFQE=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                62, 94, 71, 187, 128, 63, 239, 77, 9, 37, 199, 4, 52, 7, 138, 146, 250, 14, 20, 86, 226, 240,
                169, 1, 168, 108, 150, 19, 254, 30, 179, 164,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "x-empty":\u{20}
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "x-empty");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="55a91ad2a09a1c7bb24d76dc0d546a3a";tag="countersign"
                """
        ),
        SignatureVector(
            name: "commas and quotes in a field", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/",
            fields: [
                HeaderField("X-List", value: "a, \"b, c\" ;d"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" "x-list");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="7a938403370f17a3d6674f29aa147039";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:oHC4b6hHc7tcPuAyzk8wfqs2J9pq8UTtp8KAp4WpF8Q=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                112, 166, 226, 0, 41, 67, 219, 147, 248, 33, 177, 38, 163, 202, 36, 52, 0, 202, 184, 76, 18,
                207, 182, 52, 254, 5, 85, 19, 41, 21, 155, 222,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /
                "@query": ?
                "countersign-release": r_vector
                "x-list": a, "b, c" ;d
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "x-list");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="7a938403370f17a3d6674f29aa147039";tag="countersign"
                """
        ),
        SignatureVector(
            name: "tab inside a field", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/",
            fields: [
                HeaderField("X-Tab", value: "a\tb"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" "x-tab");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="8442b9f40612b6403977143de467acde";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:EfPH8YetDjdGQLvO/vke19AXiek0Jkd9gLFXprqLLAM=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                65, 30, 197, 74, 200, 48, 206, 249, 139, 180, 134, 79, 154, 225, 242, 228, 49, 106, 214, 110,
                225, 197, 247, 119, 8, 118, 143, 10, 242, 210, 208, 245,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /
                "@query": ?
                "countersign-release": r_vector
                "x-tab": a\tb
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "x-tab");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="8442b9f40612b6403977143de467acde";tag="countersign"
                """
        ),
        SignatureVector(
            name: "delete", method: "DELETE", scheme: "https",
            authority: "api.example.com", target: "/notes/1",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                        nonce="6197595503f01ee2a34e403fe08d2e1d";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:doWPY5NTbwnTwwyPWgRz6PVSRFVCz9vQ8+ihgSg6Cho=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                123, 50, 153, 19, 136, 174, 57, 138, 86, 83, 135, 247, 245, 161, 9, 100, 185, 112, 169, 13,
                237, 104, 212, 94, 148, 79, 76, 138, 233, 136, 14, 202,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": DELETE
                "@authority": api.example.com
                "@path": /notes/1
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="6197595503f01ee2a34e403fe08d2e1d";tag="countersign"
                """
        ),
        SignatureVector(
            name: "without alg", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";nonce="fc4263efddfa3829a5b6e3bc89b2dc6f";\
                        tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:S3CF+FZ3eY5JyHb50r3BCH2n9VDJOAI0nGypkBqxX/U=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                244, 39, 210, 184, 176, 77, 174, 213, 208, 42, 129, 12, 197, 180, 172, 121, 238, 3, 197, 178,
                94, 186, 19, 146, 87, 123, 19, 113, 173, 248, 28, 158,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";nonce="fc4263efddfa3829a5b6e3bc89b2dc6f";\
                tag="countersign"
                """
        ),
        SignatureVector(
            name: "with expires", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release");\
                        created=1700000000;keyid="r_vector";alg="hmac-sha256";expires=1700000030;\
                        nonce="b37c4527f1ef7a8246785854c860965b";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:qR8cQ++1K3FA1kNXHtOPsb3Htl+iXc8MAxWkHHguvYM=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                188, 201, 201, 101, 228, 23, 10, 192, 178, 35, 1, 118, 70, 83, 155, 174, 18, 101, 116, 90,
                172, 234, 80, 221, 186, 244, 14, 140, 118, 123, 115, 16,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release");\
                created=1700000000;keyid="r_vector";alg="hmac-sha256";expires=1700000030;\
                nonce="b37c4527f1ef7a8246785854c860965b";tag="countersign"
                """
        ),
        SignatureVector(
            name: "every other derived component", method: "GET", scheme: "https",
            authority: "api.example.com", target: "/notes?x=1",
            fields: [
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" "@target-uri" \
                        "@scheme" "@request-target");created=1700000000;keyid="r_vector";\
                        alg="hmac-sha256";nonce="16a2a55f8afb20c485985a99e7227c03";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:jtIKgQKyopJVDOJCpMab4b4OZ65It1dEP7oDh6qNCTM=:"),
            ],
            body: Array("".utf8), keyID: "r_vector",
            secret: [
                249, 171, 247, 229, 65, 137, 14, 78, 11, 195, 183, 255, 162, 179, 127, 191, 17, 204, 151, 100,
                1, 157, 190, 116, 28, 170, 117, 187, 53, 246, 214, 72,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": GET
                "@authority": api.example.com
                "@path": /notes
                "@query": ?x=1
                "countersign-release": r_vector
                "@target-uri": https://api.example.com/notes?x=1
                "@scheme": https
                "@request-target": /notes?x=1
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "@target-uri" "@scheme" "@request-target");created=1700000000;keyid="r_vector";\
                alg="hmac-sha256";nonce="16a2a55f8afb20c485985a99e7227c03";tag="countersign"
                """
        ),
        SignatureVector(
            name: "utf-8 body", method: "POST", scheme: "https",
            authority: "api.example.com", target: "/notes",
            fields: [
                HeaderField("Content-Type", value: "application/json"),
                HeaderField("Countersign-Release", value: "r_vector"),
                HeaderField(
                    "Content-Digest", value: "sha-256=:fCCIyJhdFtdBt+47JQeWKBgU+/WuOrAqf10wD0KvrdQ=:"),
                HeaderField(
                    "Signature-Input",
                    value:
                        """
                        app=("@method" "@authority" "@path" "@query" "countersign-release" \
                        "content-digest" "content-type");created=1700000000;keyid="r_vector";\
                        alg="hmac-sha256";nonce="c3b11b76acd9441426ab45ea94e8d5b6";tag="countersign"
                        """
                ),
                HeaderField("Signature", value: "app=:B6jCPlcTLisFQPjLBVJ+gVgT7vqjk02xoV5A1FiEpHM=:"),
            ],
            body: Array("{\"名\":\"ü\"}".utf8), keyID: "r_vector",
            secret: [
                96, 54, 204, 52, 46, 110, 41, 47, 186, 157, 104, 16, 26, 92, 107, 69, 65, 219, 234, 56, 46,
                85, 254, 230, 93, 16, 82, 78, 161, 110, 185, 184,
            ],
            created: 1700000000,
            stringToSign:
                """
                "@method": POST
                "@authority": api.example.com
                "@path": /notes
                "@query": ?
                "countersign-release": r_vector
                "content-digest": sha-256=:fCCIyJhdFtdBt+47JQeWKBgU+/WuOrAqf10wD0KvrdQ=:
                "content-type": application/json
                "@signature-params": ("@method" "@authority" "@path" "@query" "countersign-release" \
                "content-digest" "content-type");created=1700000000;keyid="r_vector";alg="hmac-sha256";\
                nonce="c3b11b76acd9441426ab45ea94e8d5b6";tag="countersign"
                """
        ),
    ]
}
