#include "fpga/wire/troubles.hpp"

namespace rio::wire {

void Troubles::tell(const std::string& text, const std::string& subject) {
  constexpr size_t kToldMax = 1000;
  const std::lock_guard lock(mutex_);
  if (!text.empty() && told_.size() < kToldMax &&
      told_.insert(subject.empty() ? text : subject).second) {
    to_tell_.push_back(text);
    thread_->poke_soon();
  }
}

void Troubles::note(const base::Trouble& trouble) {
  tell("partners cannot be connected: " + base::why(trouble),
       base::is_shortage(trouble.rc) ? "shortage " + std::to_string(trouble.rc) : "");
}

bool Troubles::next(std::string* text) {
  const std::lock_guard lock(mutex_);
  if (to_tell_.empty()) {
    return false;
  }
  *text = std::move(to_tell_.front());
  to_tell_.pop_front();
  return true;
}

void Troubles::set_unreachable(uint32_t id, uint32_t count, int rc) {
  const std::lock_guard lock(mutex_);
  for (uint32_t i = 0; i < count; ++i) {
    if (rc != 0) {
      unreachable_[id + i] = rc;
    } else {
      unreachable_.erase(id + i);
    }
  }
}

int Troubles::why_unreachable(uint32_t id) {
  const std::lock_guard lock(mutex_);
  const auto it = unreachable_.find(id);
  return it == unreachable_.end() ? 0 : it->second;
}

}  // namespace rio::wire
