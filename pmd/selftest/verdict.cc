#include "pmd/selftest/verdict.hpp"

namespace rio::selftest {

const char* name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kSkipped:
      break;
  }
  return "skipped";
}

Verdict pass(uint64_t done, std::string unit, uint64_t bytes) {
  return {Outcome::kPass, "", done, std::move(unit), bytes};
}

Verdict fail(std::string reason) {
  return {Outcome::kFail, std::move(reason), 0, "", 0};
}

Verdict skip(std::string reason) {
  return {Outcome::kSkipped, std::move(reason), 0, "", 0};
}

}  // namespace rio::selftest
