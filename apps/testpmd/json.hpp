/// @file
/// Writes JSON, indented by two.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace rio::testpmd {

/// Keeps commas, quotes and indentation right; nesting is the caller's duty.
class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}

  void open(char bracket);                        ///< '{' or '['
  void open(std::string_view key, char bracket);  ///< in an object
  void close(char bracket);                       ///< '}' or ']'
  void key(std::string_view name);
  void value(std::string_view text);
  void value(const char* text) { value(std::string_view(text)); }
  void value(bool flag);
  void value(double number);  ///< null if not finite
  void value(uint64_t number);
  void value(uint32_t number) { value(uint64_t{number}); }

  template <typename T>
  void pair(std::string_view name, const T& v) {
    key(name);
    value(v);
  }

 private:
  void before_item();
  void raw(std::string_view text);

  std::ostream& out_;
  std::string indent_;
  bool first_ = true;
  bool after_key_ = false;
};

}  // namespace rio::testpmd
