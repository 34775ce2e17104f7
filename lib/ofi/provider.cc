#include "lib/ofi/provider.hpp"

#include "lib/ofi/fi_fabric.hpp"
#include "lib/ofi/info.hpp"

namespace rio::ofi {

fi_provider& provider() {
  static fi_provider self = [] {
    fi_provider made{};
    made.version = kProviderVersion;
    made.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
    made.name = "rio";
    made.getinfo = get_info;
    made.fabric = open_fabric;
    made.cleanup = [] {};
    return made;
  }();
  return self;
}

}  // namespace rio::ofi

/// The entry that libfabric calls when it has loaded this library.
extern "C" FI_EXT_INI {
  rio::ofi::define_params();
  return &rio::ofi::provider();
}
