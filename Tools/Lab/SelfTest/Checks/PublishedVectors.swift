// Written by Vectors/selftest.py. Data; its lines are as long as what they hold.
// swift-format-ignore-file
import CountersignSchemes

extension PublishedVector {
    /// Vectors of each scheme, in the scheme's own format.
    package static let all: [PublishedVector] = [
        PublishedVector(
            scheme: .messageSignatures, name: "get without a query", keyID: "r_vector",
            secret: [42, 170, 171, 109, 245, 83, 233, 97, 228, 149, 180, 192, 137, 20, 117, 116, 52, 220, 1, 26, 44, 149, 240, 181, 223, 118, 77, 72, 76, 28, 66, 106],
            text: "GET /notes HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"d72d8e2816794186150c6867f7c74cd9\";tag=\"countersign\"\r\nSignature: app=:mvKWQkO84kjnxNTaJxiOgZZuZ8jRI4nl1h3XvrA9rmk=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "get with an empty query", keyID: "r_vector",
            secret: [194, 137, 42, 84, 7, 125, 127, 51, 156, 221, 190, 245, 11, 222, 220, 115, 5, 60, 213, 237, 45, 254, 44, 219, 243, 10, 99, 137, 45, 33, 128, 58],
            text: "GET /notes? HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"9484658554f79720b99d515fba275efc\";tag=\"countersign\"\r\nSignature: app=:jvLDisENpTewx5+YIGu5UnwP9pNls5h9VRK8OSlSBMU=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "root", keyID: "r_vector",
            secret: [71, 124, 29, 18, 157, 90, 208, 37, 2, 69, 64, 199, 120, 86, 106, 33, 101, 5, 235, 186, 107, 27, 161, 216, 110, 249, 75, 30, 117, 45, 226, 125],
            text: "GET / HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"4813494d137e1631bba301d5acab6e7b\";tag=\"countersign\"\r\nSignature: app=:dpz8srulU9RmLAMfOnx9NTN32deCjcZh3x5qB1SSz/U=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "query kept raw", keyID: "r_vector",
            secret: [57, 254, 124, 253, 13, 166, 46, 140, 126, 74, 232, 121, 103, 218, 238, 3, 21, 52, 251, 153, 67, 225, 173, 63, 137, 5, 164, 100, 190, 102, 121, 94],
            text: "GET /find?q=a+b&q=a%20b&z=%C3%BC&empty=&flag HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"de173141f7a1e3bb26d8fc3d1ec75aae\";tag=\"countersign\"\r\nSignature: app=:YORj+SLTsrsDLYDtgp0uOeImIHhg6Tu0XKWjm6VIpSs=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "path kept raw", keyID: "r_vector",
            secret: [194, 60, 75, 67, 109, 170, 217, 88, 175, 17, 178, 154, 44, 217, 70, 110, 97, 223, 242, 83, 231, 250, 139, 109, 41, 1, 135, 57, 27, 145, 154, 28],
            text: "GET /a%2Fb/%7Euser/;v=1/x%20y HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"e55679d548acccd09fe7b5f4a04e8cc7\";tag=\"countersign\"\r\nSignature: app=:Feghp47egDmU2UTAQd/bmDl7Cu2zgIqc0y6lRUZSGdQ=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "double slashes", keyID: "r_vector",
            secret: [121, 99, 141, 93, 141, 114, 131, 190, 21, 182, 178, 103, 175, 171, 190, 224, 51, 11, 134, 117, 243, 220, 43, 243, 49, 193, 68, 105, 144, 161, 31, 155],
            text: "GET //a//b/ HTTP/1.1\r\nHost: api.example.com\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"97477a458a9066a126e2a2332392b03a\";tag=\"countersign\"\r\nSignature: app=:Ae7w1QoEaj4g24byzhN1eIeKS1twn0yZI2d/KXOKpj0=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "authority in upper case", keyID: "r_vector",
            secret: [170, 52, 30, 162, 213, 173, 176, 81, 151, 155, 210, 84, 103, 243, 177, 205, 6, 181, 23, 2, 103, 99, 32, 200, 149, 215, 153, 122, 62, 83, 135, 153],
            text: "GET /notes HTTP/1.1\r\nHost: API.Example.COM\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"89944f692cbb30eb41eab3f56a410446\";tag=\"countersign\"\r\nSignature: app=:nZa0fuy8NIYhI+3bYOGo7lIwQeTk7/dG9Ac7OhPJsRs=:\r\n\r\n"),
        PublishedVector(
            scheme: .messageSignatures, name: "default port of https", keyID: "r_vector",
            secret: [74, 127, 29, 236, 243, 180, 197, 223, 248, 254, 140, 101, 22, 159, 224, 55, 174, 209, 143, 220, 244, 215, 98, 253, 129, 132, 77, 139, 52, 162, 197, 39],
            text: "GET /notes HTTP/1.1\r\nHost: api.example.com:443\r\nCountersign-Release: r_vector\r\nSignature-Input: app=(\"@method\" \"@authority\" \"@path\" \"@query\" \"countersign-release\");created=1700000000;keyid=\"r_vector\";alg=\"hmac-sha256\";nonce=\"97b683e8ee7878f0f15805bb660075d0\";tag=\"countersign\"\r\nSignature: app=:qbQ1z0pj9XVwfpI1zvHTGwDSq8Eb8TQZs0nxsK2ge7I=:\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "root", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 114, 111, 111, 116],
            text: "GET / HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=b7839fb98fe5fafa9c9850dab6d716f691ef1a968b9303e987eb59f9f5c5fcdd\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "path", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 112, 97, 116, 104],
            text: "GET /notes/1 HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=1674155c998fb917c2093a7a554eff2703c5c4d61739ba96baee8d4a27edad26\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "path that ends in a slash", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 112, 97, 116, 104, 32, 116, 104, 97, 116, 32, 101, 110, 100, 115, 32, 105, 110, 32, 97, 32, 115, 108, 97, 115, 104],
            text: "GET /notes/1/ HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=5518c74ccd5047e32f6ba01f5718af2e3db1cd7e7ac3aeaa8d850b64fd73e63d\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "dot segment", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 100, 111, 116, 32, 115, 101, 103, 109, 101, 110, 116],
            text: "GET /notes/./1 HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=2c277e94cd1f9227db08a051490cd6729db443e3af5da23749ac22b3bf68982e\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "two dots", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 116, 119, 111, 32, 100, 111, 116, 115],
            text: "GET /notes/a/../1 HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=c1d0fd133a6de5bee7d0a140066b82751b054b2d891179c84aefa2ce5315f402\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "two dots beyond the root", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 116, 119, 111, 32, 100, 111, 116, 115, 32, 98, 101, 121, 111, 110, 100, 32, 116, 104, 101, 32, 114, 111, 111, 116],
            text: "GET /../../notes HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=69c68cea9b2080a8c181eed43ed2595b062ef29e9c5a9e39defcdc5548e31c3d\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "dot at the end", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 100, 111, 116, 32, 97, 116, 32, 116, 104, 101, 32, 101, 110, 100],
            text: "GET /notes/. HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=5003e98bd2fbc62e4af2605f4041b91e3a3c584c79eae59989f035f7035798fe\r\n\r\n"),
        PublishedVector(
            scheme: .sigV4, name: "two dots at the end", keyID: "AKIDVECTOR",
            secret: [115, 101, 99, 114, 101, 116, 32, 111, 102, 32, 116, 119, 111, 32, 100, 111, 116, 115, 32, 97, 116, 32, 116, 104, 101, 32, 101, 110, 100],
            text: "GET /notes/a/.. HTTP/1.1\r\nHost: api.example.com\r\nX-Amz-Date: 20260131T235959Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDVECTOR/20260131/eu-central-1/execute-api/aws4_request, SignedHeaders=host;x-amz-date, Signature=9b9e180e0315ba9255553a12c7006eee51c627d756be89d08c37d1d29f39a760\r\n\r\n"),
        PublishedVector(
            scheme: .formMD5, name: "figures 0", keyID: "8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP",
            secret: [71, 98, 110, 122, 85, 73, 78, 72, 76, 110, 53, 115, 71, 119, 54, 78, 97, 120, 82, 112, 110, 118, 75, 49, 117, 50, 106, 74, 83, 68, 66, 66],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 256\r\n\r\napp_id=8ASPM4g7vMsuFoOd6v1VRorCMN0IshKP&plat=ios&ver=2.10&rand=111Fy0YUoHdrK1xe&timestamp=2024-08-18-07%3A22%3A14&userId=3670537&token=MtYiX1qRWzXF6bEKTi7LlVKJwXZrwRWGcjiBUvSY&a-b=+lead&zed=%2B&items=%2541&phoneNo=~-._&sign=2482896c25f072da66fa8a828ebb0d59"),
        PublishedVector(
            scheme: .formMD5, name: "figures 1", keyID: "pFaawe0NcyWTzepwmYSAmtWhGzCZK0oO",
            secret: [80, 122, 80, 83, 81, 88, 103, 50, 82, 89, 72, 52, 53, 84, 49, 115, 48, 77, 77, 104, 102, 104, 55, 80, 68, 98, 109, 105, 52, 97, 97, 103],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 191\r\n\r\napp_id=pFaawe0NcyWTzepwmYSAmtWhGzCZK0oO&plat=ios&ver=9.17&rand=drY3uTnAzcYwqvQm&timestamp=2023-06-01-17%3A34%3A39&A1=%2B&b=x%26y&zed=x%26y&phoneNo=123456&sign=b4b7a6dd8d9cc84178d2644073a764de"),
        PublishedVector(
            scheme: .formMD5, name: "figures 2", keyID: "xYaGhFJitIkvu71jolqOcg6gVKwdZCrQ",
            secret: [56, 90, 100, 85, 51, 106, 52, 83, 52, 106, 87, 89, 106, 76, 97, 113, 65, 103, 56, 48, 122, 85, 83, 50, 66, 81, 100, 90, 86, 65, 116, 97],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 205\r\n\r\napp_id=xYaGhFJitIkvu71jolqOcg6gVKwdZCrQ&plat=ios&ver=4.0&rand=p92KZasJwHryReEP&timestamp=2025-08-08-16%3A41%3A01&A1=~-._&%E5%90%8D%E5%AD%97=0&%C3%BC=%E4%B8%8A%E6%B5%B7&sign=5817bfd6c839030f06d6d746a5021425"),
        PublishedVector(
            scheme: .formMD5, name: "figures 3", keyID: "QTTNJDw2ocm6dAHVrBcv6YGoiwv1kDTp",
            secret: [111, 84, 79, 57, 82, 56, 108, 55, 68, 66, 79, 88, 111, 52, 65, 122, 101, 65, 53, 89, 104, 110, 86, 105, 65, 121, 88, 55, 116, 86, 104, 54],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 216\r\n\r\napp_id=QTTNJDw2ocm6dAHVrBcv6YGoiwv1kDTp&plat=android&ver=1.5&rand=cSkPAO8lrdhH6RoX&timestamp=2025-06-27-21%3A34%3A31&userId=8934211&token=f4K258aaWydhMlCwRgnll7ifTYCNZJUv8BzN6k2q&sign=b35d05f89843bffdafd979789846cd9f"),
        PublishedVector(
            scheme: .formMD5, name: "figures 4", keyID: "O2Qi0DG05q7QUO2cfOBqa7saHfaLS6rW",
            secret: [52, 87, 107, 67, 116, 55, 103, 100, 79, 68, 78, 86, 121, 84, 73, 117, 71, 109, 103, 98, 121, 100, 106, 99, 102, 110, 53, 81, 104, 53, 77, 115],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 154\r\n\r\napp_id=O2Qi0DG05q7QUO2cfOBqa7saHfaLS6rW&plat=android&ver=9.9&rand=zgJuk6dFk210OXiK&timestamp=2026-06-15-12%3A20%3A25&sign=5baed1cec7185301076ec2a4aca11402"),
        PublishedVector(
            scheme: .formMD5, name: "figures 5", keyID: "5FAFlYeoZj2kbkOSBVWjfl6yDBPC5fe1",
            secret: [56, 86, 100, 57, 121, 87, 75, 50, 78, 107, 81, 86, 68, 80, 72, 87, 122, 82, 89, 76, 73, 100, 98, 106, 114, 121, 97, 51, 74, 84, 71, 102],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 247\r\n\r\napp_id=5FAFlYeoZj2kbkOSBVWjfl6yDBPC5fe1&plat=ios&ver=7.2&rand=hzT4K41E0iMOmvuT&timestamp=2019-02-17-10%3A04%3A32&city=%F0%9F%98%80&page=%E4%B8%8A%E6%B5%B7&a-b=hello+world&%C3%BC=trail+&items=%E4%B8%8A%E6%B5%B7&sign=054282168f270a48969ea46a9368ec1f"),
        PublishedVector(
            scheme: .formMD5, name: "figures 6", keyID: "gN4HZsPrzgysSyt0pRlagv1OFXqA13Im",
            secret: [114, 100, 89, 65, 75, 77, 79, 51, 118, 72, 112, 74, 69, 109, 111, 119, 83, 97, 121, 75, 50, 120, 53, 80, 103, 69, 54, 104, 76, 87, 53, 90],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 289\r\n\r\napp_id=gN4HZsPrzgysSyt0pRlagv1OFXqA13Im&plat=ios&ver=3.4&rand=gRhpApbD5ev0bxkw&timestamp=2024-11-21-23%3A14%3A15&userId=5251015&token=vHuZeJqlzDWKWFhFe3W4MwFUnawNOUdjjIjSznaI&%C3%BC=trail+&zed=%2541&password=x%26y&items=a%3Db&%E5%90%8D%E5%AD%97=%C3%A9&sign=c0cc5d764344dc61c6c15ce068e90ab4"),
        PublishedVector(
            scheme: .formMD5, name: "figures 7", keyID: "8NDRZGHI5sSXfSoYPVrpaWks8DWvZd7r",
            secret: [66, 77, 103, 82, 72, 115, 79, 84, 80, 83, 97, 121, 109, 118, 113, 83, 55, 78, 100, 65, 85, 111, 100, 105, 80, 54, 86, 80, 49, 55, 65, 76],
            text: "POST /api HTTP/1.1\r\nHost: api.example.com\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 177\r\n\r\napp_id=8NDRZGHI5sSXfSoYPVrpaWks8DWvZd7r&plat=android&ver=2.9&rand=hfoLz0ZcxsB11ECf&timestamp=2021-04-06-09%3A09%3A34&Zed=%E4%B8%8A%E6%B5%B7&sign=ca06209f9a12f419cc4ffba5b2e24656"),
        PublishedVector(
            scheme: .authV1, name: "figures 0", keyID: "WPy0XaWknd9VB9B6pkTw",
            secret: [113, 81, 110, 108, 83, 103, 67, 110, 50, 74, 52, 78, 69, 102, 81, 79, 103, 77, 112, 122, 105, 65, 79, 68, 53, 52, 74, 97, 86, 88, 89, 104],
            text: "POST /4TCOO/qpxO1A/2A?auth_key=WPy0XaWknd9VB9B6pkTw&auth_timestamp=1722156137&auth_version=1.0&phoneno=a+b%2Bc&password=0&city=a+b%2Bc&items%5B%5D=123456&items%5B%5D=UPPER&items%5B%5D=%F0%9F%98%80&items%5B%5D=trail+&auth_signature=b0754b65f34484e96c130343239df3b30dcd0ce321c24967cc5f96438e91be47 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 1", keyID: "Ku3LwjOTPdQy4zklXiTx",
            secret: [56, 50, 115, 81, 110, 80, 76, 50, 49, 107, 113, 76, 97, 85, 122, 50, 74, 66, 73, 71, 69, 84, 120, 114, 98, 86, 99, 101, 55, 66, 56, 66],
            text: "GET /zKFgf?auth_key=Ku3LwjOTPdQy4zklXiTx&auth_timestamp=1771785785&auth_version=1.0&size=%C3%A9&auth_signature=f0044168a990189a5560c4497c09eb4fc6e0626dd176ed1683032a41e23d04d1 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 2", keyID: "MU5xQb2YxcdsifvwnkpY",
            secret: [70, 52, 99, 67, 98, 99, 72, 68, 106, 90, 88, 66, 114, 68, 117, 110, 49, 118, 49, 88, 54, 71, 69, 65, 71, 68, 89, 83, 114, 81, 74, 66],
            text: "GET /tcO3n/lXZDKmeX/0?auth_key=MU5xQb2YxcdsifvwnkpY&auth_timestamp=1684469993&auth_version=1.0&password=0&page=&q=%2B&auth_signature=76a1bdcb6a0b2d929f6a7552f2142613089b4dc1b6e70c843bde5e98fefba411 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 3", keyID: "HQxjAMPpCyggj0CM2Ott",
            secret: [86, 109, 101, 119, 115, 100, 73, 117, 88, 108, 73, 69, 57, 111, 84, 114, 51, 70, 55, 109, 84, 79, 87, 48, 103, 77, 121, 76, 51, 106, 111, 48],
            text: "PUT /cIwPvYR?auth_key=HQxjAMPpCyggj0CM2Ott&auth_timestamp=1674202744&auth_version=1.0&zed=+lead&a1=x%26y&a_b=%C3%A9&auth_signature=c49cfdc62e8b4bafaefe9379e9e57ecd8f5c373ae6f5a1c3de080739383eee53 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 4", keyID: "qXxtPTS4YcqYeC2DfEef",
            secret: [74, 112, 111, 100, 68, 57, 75, 106, 76, 75, 85, 110, 48, 74, 74, 72, 106, 115, 118, 97, 72, 57, 49, 110, 114, 122, 108, 84, 80, 119, 118, 107],
            text: "PUT /d/l7?auth_key=qXxtPTS4YcqYeC2DfEef&auth_timestamp=1559870416&auth_version=1.0&page=~-._&a-b=%2B&a_b=&q=x%26y&items%5B%5D=%E4%B8%8A%E6%B5%B7&items%5B%5D=%E4%B8%8A%E6%B5%B7&items%5B%5D=%2541&auth_signature=59022030ddc1d4974279d991973278e6fa68deb79c8a3c3e32595de66793ad18 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 5", keyID: "wwa8iX3U4d0H3rKJS143",
            secret: [48, 50, 121, 108, 108, 79, 49, 68, 48, 122, 100, 117, 99, 104, 105, 66, 122, 120, 103, 85, 101, 98, 100, 112, 85, 51, 102, 122, 73, 115, 50, 108],
            text: "PUT /r0RjM/Ev/we?auth_key=wwa8iX3U4d0H3rKJS143&auth_timestamp=1675388342&auth_version=1.0&zed=%2B&a=0&city=hello+world&a-b=trail+&auth_signature=8ded4d7ca446ef873d8a479fad7c8ea974f6ac01435fad8a138cf001500345ca HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 6", keyID: "debjVP63OkUK94Rs9e2L",
            secret: [105, 90, 109, 51, 66, 53, 115, 99, 79, 101, 71, 98, 55, 51, 99, 51, 76, 75, 55, 53, 89, 79, 80, 76, 101, 89, 105, 74, 103, 120, 114, 84],
            text: "DELETE /A?auth_key=debjVP63OkUK94Rs9e2L&auth_timestamp=1633487388&auth_version=1.0&page=x%26y&auth_signature=cecdf6808b17a1864aa91da8cd7a23c85de590b7cdffd7b8d71a457dae1d4144 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV1, name: "figures 7", keyID: "4NPrUhyjWXlMRnqtnmkp",
            secret: [90, 117, 119, 49, 110, 56, 106, 97, 106, 65, 56, 84, 122, 74, 75, 57, 97, 116, 70, 69, 57, 56, 97, 53, 81, 68, 103, 102, 109, 70, 107, 97],
            text: "GET /Mckmm/MTXGTDoT/5rXfRRv?auth_key=4NPrUhyjWXlMRnqtnmkp&auth_timestamp=1648864870&auth_version=1.0&city=hello+world&zed=%2B&auth_signature=34a2775cac8de42394dd3f9dd5ac071281a9affd0ca9bce6a96e9cb1f66972f6 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 0", keyID: "oWJda2sdpO7IVjNeKEiw",
            secret: [79, 70, 115, 108, 53, 52, 52, 81, 101, 55, 120, 116, 74, 81, 122, 116, 48, 67, 89, 97, 116, 114, 121, 55, 99, 48, 102, 106, 100, 120, 67, 105],
            text: "POST /B0GugT?auth_client_id=oWJda2sdpO7IVjNeKEiw&auth_timestamp=1665366324&auth_version=2&b=%C3%A9&page=%2541&size=50%25&password=x%26y&items%5B%5D=%F0%9F%98%80&auth_signature=ebe1783c87c653c4e3ac1f8f0b34db8c4dfd4f73df531109041939ea88f8b3d8 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 1", keyID: "ENSs2d4ksGj7fHT7c1cE",
            secret: [86, 56, 68, 67, 72, 85, 71, 49, 115, 75, 49, 122, 101, 82, 117, 98, 82, 121, 89, 87, 48, 101, 56, 52, 49, 84, 56, 107, 87, 65, 53, 120],
            text: "POST /Wmhi31?auth_client_id=ENSs2d4ksGj7fHT7c1cE&auth_timestamp=1789460549&auth_version=2&auth_signature=b44f67cff9958a09ea4bab699f0d31c0333a1a7e7e6b2a80ceaad6887276e9c4 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 2", keyID: "xyth5bMuAp8VDdx1x3Sk",
            secret: [57, 101, 107, 112, 50, 85, 113, 75, 82, 66, 117, 82, 119, 85, 79, 52, 80, 73, 50, 56, 122, 113, 121, 111, 121, 104, 66, 50, 100, 99, 106, 74],
            text: "POST /cp0yhm?auth_client_id=xyth5bMuAp8VDdx1x3Sk&auth_timestamp=1704165324&auth_version=2&a-b=%2541&items=trail+&auth_signature=44e709652248c52a0f586314b97e55d28fe6fdb81ce09eecea99a1dcf3840b3b HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 3", keyID: "5dua3GRpUi09P6RY2JBr",
            secret: [117, 90, 98, 89, 81, 100, 65, 116, 80, 71, 88, 54, 84, 71, 112, 84, 101, 52, 56, 108, 119, 117, 118, 119, 71, 110, 114, 81, 83, 66, 102, 83],
            text: "POST /Wx1XAh?auth_client_id=5dua3GRpUi09P6RY2JBr&auth_timestamp=1737872915&auth_version=2&city=%2B&auth_signature=6cf2cc5880ee4faf7d9314af89fe59dfae5951fb6972194d4c7e3f4685131c1d HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 4", keyID: "1qUBv3MtV7EFMYYetmw5",
            secret: [85, 108, 72, 50, 104, 82, 66, 120, 78, 68, 83, 108, 56, 65, 97, 114, 72, 106, 74, 115, 75, 102, 118, 76, 111, 49, 90, 119, 103, 55, 105, 103],
            text: "POST /YpmoPA?auth_client_id=1qUBv3MtV7EFMYYetmw5&auth_timestamp=1513316022&auth_version=2&a-b=hello+world&items%5B%5D=a+b%2Bc&items%5B%5D=123456&auth_signature=22478ca475c9967cdc7c4e6f7c649d945dd092296e814c1d2ea69aed9742fe14 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 5", keyID: "pEQNZsTPHuGGSR6AvA5X",
            secret: [71, 50, 51, 49, 104, 50, 104, 106, 98, 121, 117, 68, 74, 72, 108, 49, 116, 84, 108, 102, 83, 90, 101, 109, 76, 83, 87, 74, 51, 49, 115, 119],
            text: "GET /kEwGbe?auth_client_id=pEQNZsTPHuGGSR6AvA5X&auth_timestamp=1606395811&auth_version=2&page=UPPER&auth_signature=714738b1960ad81bafda121aa16dce1db17d55701284f1b4b47afce2eefa2449 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 6", keyID: "tyQDxa2RreQXgHxZscR2",
            secret: [67, 82, 74, 111, 113, 112, 119, 114, 104, 115, 108, 65, 88, 49, 53, 117, 82, 75, 76, 113, 97, 86, 114, 97, 82, 121, 119, 78, 119, 75, 119, 68],
            text: "POST /9be5p2?auth_client_id=tyQDxa2RreQXgHxZscR2&auth_timestamp=1592298961&auth_version=2&A1=&auth_signature=b8a2f695b8f94c49ecbad90bb3abb0e34c805e5519f1c949a18efd09c12a1255 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV2, name: "figures 7", keyID: "g1SG4gJUoagNPBgv1aQu",
            secret: [55, 101, 57, 55, 111, 51, 98, 52, 54, 116, 122, 75, 70, 116, 79, 49, 51, 104, 51, 120, 117, 85, 76, 70, 100, 109, 67, 115, 55, 108, 86, 107],
            text: "POST /qLuiZm?auth_client_id=g1SG4gJUoagNPBgv1aQu&auth_timestamp=1705198176&auth_version=2&items=%2B&a=a+b%2Bc&Zed=trail+&auth_signature=cfa2f23180ba2e803139b838ba0380a601de0803d6fad6d4f797706542dfd508 HTTP/1.1\r\nHost: api.example.com\r\n\r\n"),
        PublishedVector(
            scheme: .authV4, name: "figures 0", keyID: "KaVUo25BdXk3xLj2qO6Z",
            secret: [114, 108, 120, 107, 100, 104, 50, 106, 119, 87, 84, 65, 105, 118, 106, 103, 97, 105, 103, 80, 86, 108, 57, 103, 111, 85, 72, 115, 89, 71, 82, 85],
            text: "PUT /QFwju?q=3 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: KaVUo25BdXk3xLj2qO6Z\r\nX-Auth-Timestamp: 1765688875\r\nX-Auth-Signature: 66612003a856e1eab7b931b9938d5966940c09f4538cbeb4c599cbb99fe26a2c\r\nContent-Length: 20\r\n\r\n{\"n\":[\"a\",\"b\\/c\",1]}"),
        PublishedVector(
            scheme: .authV4, name: "figures 1", keyID: "CdBwH5lOEpTFbNYfxYRY",
            secret: [80, 71, 68, 82, 100, 83, 79, 114, 105, 69, 97, 50, 50, 118, 111, 84, 90, 121, 72, 87, 71, 55, 111, 105, 114, 87, 51, 101, 108, 113, 66, 65],
            text: "PUT /1Fs1a?q=5 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: CdBwH5lOEpTFbNYfxYRY\r\nX-Auth-Timestamp: 1761415691\r\nX-Auth-Signature: 36582c34172c4c4f3271514e726d027ee93c65f337e000ce753eff1ff2719b8b\r\nContent-Length: 74\r\n\r\n{\"x\":null,\"Tags\":[{\"z\":1,\"a\":\"é\"}],\"siteId\":false,\"none\":null,\"name\":\"0\"}"),
        PublishedVector(
            scheme: .authV4, name: "figures 2", keyID: "xAK1eWpH1G0xqMDPZNRb",
            secret: [106, 79, 51, 117, 98, 81, 103, 122, 100, 56, 50, 72, 112, 122, 48, 65, 119, 106, 48, 75, 111, 108, 54, 103, 97, 67, 73, 99, 52, 98, 78, 73],
            text: "PUT /MsIrj?q=2 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: xAK1eWpH1G0xqMDPZNRb\r\nX-Auth-Timestamp: 1702475080\r\nX-Auth-Signature: 1df9ffa2763ddb9048a63dd54407e90871ce4cd7926d385ea1081b7e54e623a3\r\nContent-Length: 48\r\n\r\n{\"name\":3.5,\"ok\":\"上海\",\"x\":\"é\",\"meta\":\"x&y\"}"),
        PublishedVector(
            scheme: .authV4, name: "figures 3", keyID: "yG16dhaLkeaFF2Ceoggd",
            secret: [121, 108, 83, 71, 71, 103, 99, 119, 67, 103, 81, 111, 102, 71, 105, 68, 103, 86, 74, 57, 74, 69, 104, 110, 66, 75, 104, 119, 70, 101, 78, 84],
            text: "POST /ae5Ds?q=9 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: yG16dhaLkeaFF2Ceoggd\r\nX-Auth-Timestamp: 1601615016\r\nX-Auth-Signature: 204fe2f2da12c1e0d6b329398dde8ff64ae14eeb41dfe3cd5428bfcd930e91a7\r\nContent-Length: 9\r\n\r\n{\"ok\":{}}"),
        PublishedVector(
            scheme: .authV4, name: "figures 4", keyID: "LrTpiU65ZKaJlWnArJo7",
            secret: [52, 103, 52, 78, 118, 100, 116, 84, 106, 50, 104, 108, 82, 48, 82, 73, 72, 68, 118, 79, 114, 81, 84, 87, 114, 114, 77, 110, 88, 67, 75, 118],
            text: "POST /OBm9o?q=1 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: LrTpiU65ZKaJlWnArJo7\r\nX-Auth-Timestamp: 1603925914\r\nX-Auth-Signature: 30b7c425bc953d95f0f7fce4e8d049d76fcb14f090accd6ccffa8c7c605d4a37\r\nContent-Length: 131\r\n\r\n{\"n\":{\"k\":\"v&w=x\"},\"ok\":[{\"z\":1,\"a\":\"é\"}],\"siteId\":[\"a\",\"b\\/c\",1],\"none\":[{\"z\":1,\"a\":\"é\"}],\"name\":[{\"z\":1,\"a\":\"é\"}],\"meta\":null}"),
        PublishedVector(
            scheme: .authV4, name: "figures 5", keyID: "GH984JaBqhMP84VcXMaC",
            secret: [115, 80, 78, 84, 97, 111, 69, 89, 117, 65, 90, 98, 50, 119, 99, 72, 102, 77, 56, 55, 104, 89, 122, 48, 48, 110, 105, 82, 82, 100, 51, 88],
            text: "POST /D6Imk?q=9 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: GH984JaBqhMP84VcXMaC\r\nX-Auth-Timestamp: 1667400671\r\nX-Auth-Signature: 9e95d365e6972a9a4c3f78f270c3dacd4752417b54d1ae7d562955b605f1915b\r\nContent-Length: 57\r\n\r\n{\"siteId\":\"+\",\"ok\":{},\"n\":{\"b\":2,\"a\":[1,2]},\"name\":false}"),
        PublishedVector(
            scheme: .authV4, name: "figures 6", keyID: "LrnesHzYplGAb3NW3nTD",
            secret: [122, 103, 90, 52, 78, 77, 83, 65, 87, 110, 53, 109, 120, 104, 98, 71, 65, 117, 114, 79, 122, 87, 65, 74, 122, 101, 88, 56, 122, 66, 55, 79],
            text: "POST /VcDDI?q=3 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: LrnesHzYplGAb3NW3nTD\r\nX-Auth-Timestamp: 1733800494\r\nX-Auth-Signature: 450d23107ab4f26bd927fb70a4334677c88cdf9d8b8d90ae60b978a1ded62563\r\nContent-Length: 46\r\n\r\n{\"meta\":1e3,\"ok\":\" lead\",\"n\":-7,\"empty\":\"a=b\"}"),
        PublishedVector(
            scheme: .authV4, name: "figures 7", keyID: "3LoYaXR1wvXvnzSr1XFC",
            secret: [70, 101, 83, 114, 119, 100, 71, 82, 106, 118, 74, 51, 111, 100, 69, 73, 51, 106, 76, 106, 68, 100, 114, 48, 77, 116, 107, 113, 102, 70, 54, 97],
            text: "POST /8Cei6?q=2 HTTP/1.1\r\nHost: api.example.com\r\nX-Auth-Version: 4\r\nX-Auth-Client-ID: 3LoYaXR1wvXvnzSr1XFC\r\nX-Auth-Timestamp: 1771328512\r\nX-Auth-Signature: ad16dd89f27ddd2b15d4f6da0bb26569ce38b0719a450e431fe9072f531c5350\r\nContent-Length: 79\r\n\r\n{\"Tags\":[\"a\",\"b\\/c\",1],\"none\":{\"b\":2,\"a\":[1,2]},\"n\":null,\"empty\":{\"k\":\"v&w=x\"}}"),
    ]
}
