/// @file
/// The kinds of findings of doctor, and its findings.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace rio::tool {

enum class Severity : unsigned char {
  kWarning,  ///< works, but not as it could
  kError,    ///< does not work, or not for long
};

/// A kind of finding. Ids are stable: scripts may look for them.
struct Kind {
  const char* id;
  Severity severity;
  const char* line;  ///< what is wrong, in a line
  const char* why;   ///< what comes of it, and how it comes about
};

/// All kinds, in the order in which doctor looks.
[[nodiscard]] std::span<const Kind> all_kinds();

/// @return null if there is none of this id.
[[nodiscard]] const Kind* find_kind(const std::string& id);

struct Finding {
  const Kind* kind = nullptr;
  std::string card;    ///< address, empty if it is the machine's
  std::string seen;    ///< what was found, with its numbers
  std::string remedy;  ///< the exact command of the shell; empty where none can do it
  std::string advice;  ///< what a person must do, instead or besides
};

/// All findings of one run of doctor. One thread.
struct Findings {
  std::vector<Finding> all;
  std::vector<std::string> unseen;  ///< what could not be looked at, and why

  /// @param id one of all_kinds(); anything else is a mistake of the program.
  /// @param remedy, advice one of them must say something.
  void add(const char* id, const std::string& card, const std::string& seen,
           const std::string& remedy, const std::string& advice = "");
  [[nodiscard]] size_t count(Severity severity) const;
};

}  // namespace rio::tool
