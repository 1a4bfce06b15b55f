# SPDX-License-Identifier: Apache-2.0
# The Python package: its extension module, beside links to its .py files, in build/python, which the
# tests put on PYTHONPATH. In a wheel (scikit-build-core sets SKBUILD) it is installed with the
# library and the programs inside the package, and nothing else is.

if(BULKHEAD_SANITIZE)
    return() # an interpreter without the sanitizer cannot load it
endif()
find_package(Python3 3.10 COMPONENTS Interpreter Development.Module QUIET)
if(NOT Python3_Development.Module_FOUND)
    if(SKBUILD)
        message(FATAL_ERROR "The headers of Python 3.10 or later were not found")
    endif()
    return()
endif()

set(package "${CMAKE_BINARY_DIR}/python/bulkhead")
file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/python/src/*.c")
Python3_add_library(bulkhead_python MODULE WITH_SOABI EXCLUDE_FROM_ALL ${sources})
set_target_properties(bulkhead_python PROPERTIES
    OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY "${package}" INSTALL_RPATH "$ORIGIN/lib")
target_link_libraries(bulkhead_python PRIVATE bulkhead_flags Bulkhead::bulkhead Bulkhead::cuda)
# Python's own headers and its tables of functions are not as strict as this project.
target_compile_options(bulkhead_python PRIVATE -std=gnu11 -Wno-pedantic -Wno-missing-field-initializers
    -Wno-cast-function-type)

file(GLOB modules CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/python/bulkhead"
     "${PROJECT_SOURCE_DIR}/python/bulkhead/*.py" "${PROJECT_SOURCE_DIR}/python/bulkhead/*.pyi"
     "${PROJECT_SOURCE_DIR}/python/bulkhead/py.typed")
file(MAKE_DIRECTORY "${package}")
file(WRITE "${CMAKE_BINARY_DIR}/python/interpreter" "${Python3_EXECUTABLE}")
foreach(module IN LISTS modules)
    file(CREATE_LINK "${PROJECT_SOURCE_DIR}/python/bulkhead/${module}" "${package}/${module}" SYMBOLIC)
endforeach()

if(SKBUILD)
    set_target_properties(bulkhead_python PROPERTIES EXCLUDE_FROM_ALL OFF)
    # One file for each library: a wheel cannot hold links.
    set_target_properties(bulkhead_shared bulkhead_cuda_shared PROPERTIES VERSION ${PROJECT_VERSION_MAJOR})
    install(TARGETS bulkhead_python LIBRARY DESTINATION .)
    install(TARGETS bulkhead_shared bulkhead_cuda_shared
            LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" NAMELINK_SKIP)
endif()
