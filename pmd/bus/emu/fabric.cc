#include "pmd/bus/emu/fabric.hpp"

#include <cerrno>
#include <map>
#include <mutex>

namespace rio::pmd {
namespace {

struct Named {
  std::shared_ptr<model::Cable> cable = model::make_cable();
  bool used[2] = {false, false};
};

std::mutex cables_mutex;

std::map<std::string, Named>& cables() {
  static std::map<std::string, Named> all;
  return all;
}

}  // namespace

int plug_in(const std::string& name, std::unique_ptr<model::Wire>* out, int* side) {
  if (name == "loop") {
    *side = 0;
    *out = model::make_loop_wire();
    return 0;
  }
  const std::lock_guard lock(cables_mutex);
  Named& named = cables()[name];
  for (int i = 0; i < 2; ++i) {
    if (!named.used[i]) {
      named.used[i] = true;
      *side = i;
      *out = named.cable->plug(i);
      return 0;
    }
  }
  return -EBUSY;
}

void unplug(const std::string& name, int side) {
  const std::lock_guard lock(cables_mutex);
  const auto it = cables().find(name);
  if (it == cables().end()) {
    return;
  }
  it->second.used[side] = false;
  if (!it->second.used[0] && !it->second.used[1]) {
    cables().erase(it);
  }
}

}  // namespace rio::pmd
