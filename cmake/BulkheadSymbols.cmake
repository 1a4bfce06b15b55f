# SPDX-License-Identifier: Apache-2.0
# The versions of the library's symbols. Functions of a header whose first lines call it experimental
# have the version BULKHEAD_EXPERIMENTAL, all others BULKHEAD_ and the major version: `readelf -V` of a
# program shows whether it uses experimental ones.

# Writes a version script for the linker to `file`, from the headers named.
function(bulkhead_version_script file)
    set(stable "")
    set(experimental "")
    foreach(header IN LISTS ARGN)
        set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
        file(STRINGS "${header}" introduction LIMIT_COUNT 5)
        set(kind stable)
        if(introduction MATCHES "Experimental")
            set(kind experimental)
        endif()
        file(STRINGS "${header}" declarations REGEX "^BH_API .*[ *]bh_[a-z0-9_]+\\(")
        foreach(declaration IN LISTS declarations)
            string(REGEX REPLACE "^BH_API [^(]*[ *](bh_[a-z0-9_]+)\\(.*" "\\1" name "${declaration}")
            string(APPEND ${kind} "    ${name};\n")
        endforeach()
    endforeach()
    set(script "BULKHEAD_${PROJECT_VERSION_MAJOR} {\nglobal:\n${stable}local:\n    *;\n};\n")
    string(APPEND script "BULKHEAD_EXPERIMENTAL {\nglobal:\n${experimental}};\n")
    file(CONFIGURE OUTPUT "${file}" CONTENT "${script}" @ONLY)
endfunction()
