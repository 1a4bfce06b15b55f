# SPDX-License-Identifier: Apache-2.0
# libbulkhead-jit.so, which bulkhead-compiler loads from its own folder. Built where LLVM 19 can be compiled
# against; everything else neither sees LLVM nor links it.
option(BULKHEAD_JIT "Build libbulkhead-jit.so where LLVM is found" ON)

# Distributions other than Debian have one LLVM, in the usual folders: taken if it is of this version.
function(bulkhead_find_llvm_elsewhere)
    find_path(elsewhere llvm/Config/llvm-config.h NO_CACHE)
    if(elsewhere)
        file(STRINGS "${elsewhere}/llvm/Config/llvm-config.h" found REGEX "define LLVM_VERSION_MAJOR 19$")
        if(found)
            set(BULKHEAD_LLVM_INCLUDE "${elsewhere}" CACHE PATH "Folder of llvm-c/" FORCE)
            find_library(BULKHEAD_LLVM_LIBRARY NAMES LLVM-19)
        endif()
    endif()
endfunction()

function(bulkhead_jit_library)
    find_path(BULKHEAD_LLVM_INCLUDE llvm-c/Core.h PATHS /usr/lib/llvm-19/include NO_DEFAULT_PATH)
    find_library(BULKHEAD_LLVM_LIBRARY NAMES LLVM-19 PATHS /usr/lib/llvm-19/lib NO_DEFAULT_PATH)
    if(NOT BULKHEAD_LLVM_INCLUDE)
        bulkhead_find_llvm_elsewhere()
    endif()
    if(NOT BULKHEAD_JIT OR BULKHEAD_SANITIZE)
        return()
    endif()
    if(NOT BULKHEAD_LLVM_INCLUDE OR NOT BULKHEAD_LLVM_LIBRARY)
        message(STATUS "No llvm-19-dev: the CPU device is built without its JIT")
        return()
    endif()
    file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/src/jit/*.c")
    add_library(bulkhead_jit MODULE ${sources} $<TARGET_OBJECTS:bulkhead_base>
                $<TARGET_OBJECTS:bulkhead_error>
                "${PROJECT_SOURCE_DIR}/src/ptx/tables.c")
    target_include_directories(bulkhead_jit SYSTEM PRIVATE "${BULKHEAD_LLVM_INCLUDE}")
    target_link_libraries(bulkhead_jit PRIVATE bulkhead_flags "${BULKHEAD_LLVM_LIBRARY}")
    target_link_options(bulkhead_jit PRIVATE -Wl,-z,defs)
    # Beside bulkhead-compiler, where it looks. The system finds LLVM: no path to it is kept.
    set_target_properties(bulkhead_jit PROPERTIES OUTPUT_NAME bulkhead-jit
        LIBRARY_OUTPUT_DIRECTORY "${CMAKE_RUNTIME_OUTPUT_DIRECTORY}" SKIP_BUILD_RPATH ON)
    install(TARGETS bulkhead_jit LIBRARY DESTINATION "${CMAKE_INSTALL_LIBEXECDIR}/bulkhead")
endfunction()
