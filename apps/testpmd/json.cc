#include "apps/testpmd/json.hpp"

#include <cmath>
#include <cstdio>

namespace rio::testpmd {

void JsonWriter::before_item() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!first_) {
    out_ << ',';
  }
  if (!indent_.empty()) {
    out_ << '\n' << indent_;
  }
  first_ = false;
}

void JsonWriter::raw(std::string_view text) {
  before_item();
  out_ << text;
}

void JsonWriter::open(char bracket) {
  before_item();
  out_ << bracket;
  indent_ += "  ";
  first_ = true;
}

void JsonWriter::open(std::string_view name, char bracket) {
  key(name);
  open(bracket);
}

void JsonWriter::close(char bracket) {
  indent_.resize(indent_.size() - 2);
  if (!first_) {
    out_ << '\n' << indent_;
  }
  out_ << bracket;
  first_ = false;
  if (indent_.empty()) {
    out_ << '\n';
  }
}

void JsonWriter::key(std::string_view name) {
  value(name);
  out_ << ": ";
  after_key_ = true;
}

void JsonWriter::value(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
      quoted += code;
    } else {
      quoted += c;
    }
  }
  raw(quoted + '"');
}

void JsonWriter::value(bool flag) {
  raw(flag ? "true" : "false");
}

void JsonWriter::value(double number) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", number);
  raw(std::isfinite(number) ? text : "null");
}

void JsonWriter::value(uint64_t number) {
  raw(std::to_string(number));
}

}  // namespace rio::testpmd
