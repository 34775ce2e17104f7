#include "lib/ofi/provider.hpp"

namespace rio::ofi {

fi_provider& provider() {
  static fi_provider self = [] {
    fi_provider made{};
    made.version = kProviderVersion;
    made.fi_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
    made.name = "rio";
    made.cleanup = [] {};
    return made;
  }();
  return self;
}

}  // namespace rio::ofi
