// SPDX-License-Identifier: Apache-2.0
// Style and script of an HTML report. The document's content policy allows this script by its hash
// and no other, so that nothing in a report can run.
#pragma once

namespace cli {

extern const char* const kHtmlStyle;
extern const char* const kHtmlScript;
// Base64 of the script's SHA-256; cli_test.py holds it against the script.
extern const char* const kHtmlScriptHash;

}  // namespace cli
