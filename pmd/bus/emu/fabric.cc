#include "pmd/bus/emu/fabric.hpp"

#include <cerrno>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/log.hpp"
#include "fpga/wire/switched/fabric.hpp"

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

std::map<std::string, std::weak_ptr<wire::switched::Fabric>>& fabrics() {
  static std::map<std::string, std::weak_ptr<wire::switched::Fabric>> all;
  return all;
}

/// A side was unplugged: its wire is destroyed.
void unplug(const std::string& name, int side) {
  const std::lock_guard lock(cables_mutex);
  Named& named = cables()[name];
  named.used[side] = false;
  if (!named.used[0] && !named.used[1]) {
    cables().erase(name);
  }
}

/// The fabric of a file, or a new one. With the lock held.
[[nodiscard]] int find_fabric(const std::string& topology,
                              std::shared_ptr<wire::switched::Fabric>* out) {
  std::error_code ignored;  // a file that cannot be found is told by load_topology()
  const std::string path = std::filesystem::weakly_canonical(topology, ignored).string();
  std::shared_ptr<wire::switched::Fabric> fabric = fabrics()[path].lock();
  if (fabric == nullptr) {
    wire::switched::Topology loaded;
    std::string error;
    if (const int rc = wire::switched::load_topology(topology, &loaded, &error); rc != 0) {
      base::log_error("emulated card: %s", error.c_str());
      return rc;
    }
    if (const int rc = wire::switched::Fabric::create(std::move(loaded), nullptr, &fabric);
        rc != 0) {
      base::log_error("emulated card: no memory for the fabric of %s; take a smaller one",
                      topology.c_str());
      return rc;
    }
    fabrics()[path] = fabric;
  }
  *out = std::move(fabric);
  return 0;
}

}  // namespace

int plug_in(const std::string& name, std::unique_ptr<model::Wire>* out, int* side,
            std::shared_ptr<void>* plug) {
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
      plug->reset(static_cast<void*>(nullptr), [name, i](void*) { unplug(name, i); });
      return 0;
    }
  }
  return -EBUSY;
}

int plug_into_fabric(const std::string& topology, const std::string& endpoint,
                     std::unique_ptr<model::Wire>* out) {
  const std::lock_guard lock(cables_mutex);
  std::shared_ptr<wire::switched::Fabric> fabric;
  if (const int rc = find_fabric(topology, &fabric); rc != 0) {
    return rc;
  }
  const int rc = fabric->plug(endpoint, out);
  if (rc != 0) {
    base::log_error("emulated card: %s: endpoint '%s' %s", topology.c_str(), endpoint.c_str(),
                    rc == -EBUSY ? "has a card already; take another one"
                                 : "does not exist; name one of the file's endpoints by at=");
  }
  return rc;
}

}  // namespace rio::pmd
