# pk_embed_text(OUT ROOT dir GLOBS ...): one generated .cpp with every matching text file, as pk::embedded_sources().
function(pk_embed_text OUT)
  cmake_parse_arguments(ARG "" "ROOT" "GLOBS" ${ARGN})
  set(FILES "")
  foreach(pattern ${ARG_GLOBS})
    file(GLOB MATCHED CONFIGURE_DEPENDS RELATIVE ${ARG_ROOT} ${ARG_ROOT}/${pattern})
    list(APPEND FILES ${MATCHED})
  endforeach()
  list(REMOVE_DUPLICATES FILES)
  list(SORT FILES)
  set(DEPENDS "")
  foreach(file ${FILES})
    list(APPEND DEPENDS ${ARG_ROOT}/${file})
  endforeach()
  set(GENERATED ${CMAKE_CURRENT_BINARY_DIR}/embedded_sources.cpp)
  string(REPLACE ";" "|" FILE_LIST "${FILES}")
  add_custom_command(
    OUTPUT ${GENERATED}
    COMMAND ${Python_EXECUTABLE} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed.py ${ARG_ROOT} ${GENERATED} "${FILE_LIST}"
    DEPENDS ${DEPENDS} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/embed.py
    VERBATIM)
  set(${OUT} ${GENERATED} PARENT_SCOPE)
endfunction()
