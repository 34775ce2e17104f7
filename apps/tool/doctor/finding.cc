#include "apps/tool/doctor/finding.hpp"

#include <algorithm>
#include <cassert>

namespace rio::tool {

const Kind* find_kind(const std::string& id) {
  const auto kinds = all_kinds();
  const auto it =
      std::find_if(kinds.begin(), kinds.end(), [&id](const Kind& kind) { return id == kind.id; });
  return it == kinds.end() ? nullptr : &*it;
}

void Findings::add(const char* id, const std::string& card, const std::string& seen,
                   const std::string& remedy, const std::string& advice) {
  const Kind* kind = find_kind(id);
  assert(kind != nullptr && (!remedy.empty() || !advice.empty()));
  findings_.push_back({kind, card, seen, remedy, advice});
}

size_t Findings::count(Severity severity) const {
  return static_cast<size_t>(
      std::count_if(findings_.begin(), findings_.end(),
                    [severity](const Finding& one) { return one.kind->severity == severity; }));
}

}  // namespace rio::tool
